package ui

import (
	"errors"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/hostile"
)

func TestProgressObeysNobody(t *testing.T) {
	var b strings.Builder
	p := NewProgress(&b, false, false)
	p.Stage(hostile.Text)
	p.reportSlow(VisibleCell(hostile.Text))
	p.Done(hostile.Text, hostile.Text, time.Second)
	p.Note(hostile.Text)
	p.Warn(hostile.Text, hostile.Text)
	p.Fail(errors.New(hostile.Text), hostile.Text)
	if bad := hostile.Obeyed(b.String()); bad != "" {
		t.Errorf("a terminal would obey %q in\n%q", bad, b.String())
	}
	if strings.Contains(b.String(), "\nc ") {
		t.Errorf("a forged line:\n%s", b.String())
	}
}

func TestVisibleLeavesWhatIsPrinted(t *testing.T) {
	for _, text := range []string{"", "a b\nc", "✓ naïve 東京 µs", "…"} {
		if got := Visible(text); got != text {
			t.Errorf("visible(%q) = %q", text, got)
		}
	}
	if got := Visible("a\tb\x1bc\xff"); got != `a b\x1bc\xff` {
		t.Errorf("got %q", got)
	}
	if got := visibleJSON("\"\U000e0041\u202e\""); got != `"\udb40\udc41\u202e"` {
		t.Errorf("got %q", got)
	}
}

func FuzzVisible(f *testing.F) {
	f.Add(hostile.Text)
	f.Fuzz(func(t *testing.T, text string) {
		if bad := hostile.Obeyed(Visible(text)); bad != "" {
			t.Errorf("%q: a terminal would obey %q", text, bad)
		}
		if strings.ContainsAny(VisibleCell(text), "\n\t") {
			t.Errorf("%q leaves its cell", text)
		}
	})
}
