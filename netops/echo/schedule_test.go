package echo

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestProbersSendTogether: probers that begin at different times send their requests at the same ones.
func TestProbersSendTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.attach(t, gatewayAddr, nil)
		s := w.attach(t, nodeAddr, nil)
		begin := time.Now()
		after(130 * time.Millisecond)
		probe(t, s, ProbeConfig{Target: gatewayAddr, Interval: 500 * time.Millisecond})
		after(230 * time.Millisecond)
		probe(t, s, ProbeConfig{Target: gatewayAddr, Interval: time.Second})
		after(2 * time.Second)
		w.expectSends(t, begin, 130, 360, 500, 1000, 1000, 1500, 2000, 2000)
	})
}

// TestHurry: a request at once, and the next one when it is time.
func TestHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.attach(t, gatewayAddr, &Responder{})
		begin := time.Now()
		p := probe(t, w.attach(t, nodeAddr, nil), ProbeConfig{Target: gatewayAddr, Interval: 10 * time.Second})
		after(300 * time.Millisecond)
		p.Hurry()
		after(10 * time.Second)
		if stats := p.Stats(); stats.Sent != 3 || stats.Loss != 0 {
			t.Errorf("stats %+v: want a request at the beginning, at once, and at its time", stats)
		}
		p.Stop()
		p.Hurry()
		after(time.Minute)
		w.expectSends(t, begin, 0, 0, 300, 300, 10000, 10000) // requests and answers
	})
}

// TestCalm: requests are rare once a whole window is answered, and frequent from the first loss on until a whole
// window is answered again.
func TestCalm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.attach(t, gatewayAddr, &Responder{})
		lost := make(chan time.Time, 1)
		p := probe(t, w.attach(t, nodeAddr, nil), ProbeConfig{
			Target: gatewayAddr, Interval: 100 * time.Millisecond, Calm: time.Second, Timeout: 300 * time.Millisecond, Window: 8,
			OnLost: func(consecutive int) {
				if consecutive == 4 {
					lost <- time.Now()
				}
			},
		})
		sentWithin := func(d time.Duration) uint64 {
			before := p.Stats().Sent
			after(d)
			return p.Stats().Sent - before
		}
		after(50 * time.Millisecond)
		if n := sentWithin(600 * time.Millisecond); n != 6 {
			t.Errorf("%d requests in 0.6 s before the window is full, want 6", n)
		}
		after(2 * time.Second)
		if n := sentWithin(10 * time.Second); n != 10 {
			t.Errorf("%d requests in 10 s of calm, want 10", n)
		}
		w.setDrop(func(_, _ netip.AddrPort) bool { return true })
		begin := time.Now()
		after(5 * time.Second)
		// The next request goes in less than half a second and is given up after 0.3 s; three follow 0.1 s apart, and
		// the last of them is given up after 0.3 s.
		if d := (<-lost).Sub(begin); d > 1500*time.Millisecond {
			t.Errorf("four losses after %v, want them within 1.5 s", d)
		}
		if n := sentWithin(time.Second); n != 10 {
			t.Errorf("%d requests in a second of losses, want 10", n)
		}
	})
}

// expectSends compares when packets were sent, in milliseconds since begin.
func (w *wire) expectSends(t *testing.T, begin time.Time, want ...int64) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	var got []int64
	for _, at := range w.sends {
		got = append(got, at.Sub(begin).Milliseconds())
	}
	if !slices.Equal(got, want) {
		t.Errorf("sent at %v, want %v", got, want)
	}
}
