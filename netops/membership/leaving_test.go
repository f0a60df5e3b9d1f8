package membership

import (
	"testing"
	"time"
)

// TestSends checks for which nodes and gateways of the peer a draining gateway waits.
func TestSends(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name   string
		echo   time.Duration // time since its last echo
		since  time.Duration // time since the gateway announced its end; zero: it has not
		unused bool
		want   bool
	}{
		{"it sends", 0, 0, false, true},
		{"it sends by others", 0, 0, true, false},
		{"it sends, and is silent for less than the limit", LiveFor - ms, 0, false, true},
		{"it is silent", LiveFor, 0, false, false},
		{"it sent by others before the end was announced", 200 * ms, 100 * ms, true, true},
		{"it sends by others since then", 100 * ms, 200 * ms, true, false},
		{"it sends since then", 100 * ms, 200 * ms, false, true},
		{"it is silent, and was before", LiveFor, 100 * ms, true, false},
	} {
		var since time.Time
		if test.since > 0 {
			since = begin.Add(-test.since)
		}
		s := Sender{Echo: begin.Add(-test.echo), Unused: test.unused}
		if got := s.sends(since, begin); got != test.want {
			t.Errorf("%s: it is waited for: %t, want %t", test.name, got, test.want)
		}
	}
}

// TestLeaving checks that a gateway ends after ten checks without a sender since its announcement, however much time
// passes between them, and that any sender begins the count anew.
func TestLeaving(t *testing.T) {
	var l Leaving
	l.Drain()
	now := begin
	check := func(unused bool) (over, announce bool) {
		now = now.Add(time.Second)
		return l.Check([]Sender{{Echo: now, Unused: unused}}, now)
	}
	for range 3 {
		if over, announce := check(false); over || announce {
			t.Fatalf("while it is used: over %t, a new announcement %t", over, announce)
		}
	}
	if over, announce := check(true); over || !announce {
		t.Fatalf("once it is not used: over %t, a new announcement %t", over, announce)
	}
	count := func() (checks int) {
		for over := false; !over && checks <= leavingChecks; checks++ {
			over, _ = check(true)
		}
		return checks
	}
	if got := count(); got != leavingChecks {
		t.Errorf("over after %d checks, want %d", got, leavingChecks)
	}
	check(false)
	if got := count(); got != leavingChecks {
		t.Errorf("over after %d checks since it was used, want %d", got, leavingChecks)
	}
	if draining, noWay := l.Announces(); !draining || !noWay {
		t.Errorf("it announces draining %t, no way on %t", draining, noWay)
	}
}
