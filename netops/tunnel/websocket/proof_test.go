package websocket

import (
	"strings"
	"testing"
	"time"
)

var (
	testKey = Key{1, 2, 3}
	testID  = TunnelID{Server: 1, Client: 2}
)

func testProofs(begin time.Time) *proofs {
	return &proofs{begin: begin, keys: func(id TunnelID) (Key, bool) {
		if id == testID {
			return testKey, true
		}
		return Key{}, false
	}}
}

// TestProof: a proof counts once, for its tunnel, for half a minute, and not if it is older than the server.
func TestProof(t *testing.T) {
	now := time.Now()
	valid := newProof(testKey, testID, now)
	for name, c := range map[string]struct {
		header string
		at     time.Duration // after now
		want   bool
	}{
		"valid":            {valid, 0, true},
		"slow clock":       {newProof(testKey, testID, now.Add(-29*time.Second)), 0, true},
		"fast clock":       {newProof(testKey, testID, now.Add(29*time.Second)), 0, true},
		"too slow":         {newProof(testKey, testID, now.Add(-32*time.Second)), 0, false},
		"too fast":         {newProof(testKey, testID, now.Add(32*time.Second)), 0, false},
		"later":            {valid, 32 * time.Second, false},
		"before the start": {newProof(testKey, testID, now.Add(-62*time.Second)), -61 * time.Second, false},
		"another key":      {newProof(Key{1, 2, 4}, testID, now), 0, false},
		"another tunnel":   {newProof(testKey, TunnelID{2, 2}, now), 0, false},
		"unknown tunnel":   {newProof(Key{}, TunnelID{2, 2}, now), 0, false},
		"none":             {"", 0, false},
		"another scheme":   {"Basic" + valid[len("Liqonet"):], 0, false},
		"longer":           {valid + "A", 0, false},
		"no base64":        {valid[:len(valid)-1] + "=", 0, false},
		"one bit":          {flip(valid), 0, false},
	} {
		p := testProofs(now.Add(-time.Minute))
		if id, got := p.check(c.header, now.Add(c.at)); got != c.want || got && id != testID {
			t.Errorf("%s: %v, %t", name, id, got)
		}
		if _, got := p.check(c.header, now.Add(c.at)); got {
			t.Errorf("%s: valid twice", name)
		}
	}
}

// flip changes the tunnel's number in a proof.
func flip(header string) string {
	return strings.Replace(header, proofScheme+"AQE", proofScheme+"AQI", 1)
}

// TestNoncesAreBounded: a holder of the key cannot fill the memory, and only delays itself.
func TestNoncesAreBounded(t *testing.T) {
	now := time.Now()
	p := testProofs(now.Add(-time.Hour))
	for range noncesMost {
		if _, ok := p.check(newProof(testKey, testID, now), now); !ok {
			t.Fatal("refused")
		}
	}
	if _, ok := p.check(newProof(testKey, testID, now), now); ok || len(p.seen) > noncesMost {
		t.Errorf("%d nonces, one more accepted: %t", len(p.seen), ok)
	}
	later := now.Add(2*clockTolerance + time.Second)
	if _, ok := p.check(newProof(testKey, testID, later), later); !ok || len(p.seen) != 1 {
		t.Errorf("a minute later: %d nonces, accepted: %t", len(p.seen), ok)
	}
}

// FuzzProof: no header but one with the key is valid.
func FuzzProof(f *testing.F) {
	now := time.Unix(1_800_000_000, 0)
	f.Add(newProof(Key{}, testID, now))
	f.Add(proofScheme)
	f.Fuzz(func(t *testing.T, header string) {
		if _, ok := testProofs(now.Add(-time.Hour)).check(header, now); ok {
			t.Errorf("%q is valid", header)
		}
	})
}
