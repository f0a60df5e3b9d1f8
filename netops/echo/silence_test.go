package echo

import (
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"
)

// countSilences starts a prober of a gateway with a callback for its silences.
func countSilences(t *testing.T, w *wire, silent func()) *Prober {
	return probe(t, w.attach(t, nodeAddr, nil), ProbeConfig{
		Target: gatewayAddr, Interval: 20 * time.Millisecond, Calm: 250 * time.Millisecond, Timeout: 600 * time.Millisecond,
		Window: 512, OnSilence: silent, Patience: 120 * time.Millisecond,
	})
}

// TestSilence: silence of a target is reported once, within half a second, after some additional requests; and again
// after it has answered.
func TestSilence(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		w.attach(t, gatewayAddr, &Responder{})
		var count atomic.Int64
		p := countSilences(t, w, func() { count.Add(1) })
		atRest := p.Stats().Sent
		for round := 1; round <= 3; round++ {
			after(20*time.Second + time.Duration(round)*77*time.Millisecond)
			w.setDrop(func(_, to netip.AddrPort) bool { return to == gatewayAddr })
			sent := p.Stats().Sent
			if rest := sent - atRest; round == 1 && rest > 82 {
				t.Errorf("%d requests in 20 s to one that answers: more than one each calm interval", rest)
			}
			after(150 * time.Millisecond)
			if n := int(count.Load()); n != round-1 {
				t.Errorf("silent after 150 ms, which is a moment")
			}
			after(300 * time.Millisecond)
			if n := int(count.Load()); n != round {
				t.Errorf("%d silences after %d of 450 ms", n, round)
			}
			if n := p.Stats().Sent - sent; n < 1+quickProbes || n > 2+quickProbes {
				t.Errorf("%d requests were left unanswered, want %d, and those that were due", n, quickProbes)
			}
			after(10 * time.Second)
			if n := int(count.Load()); n != round {
				t.Errorf("%d silences after %d long ones", n, round)
			}
			w.setDrop(nil)
		}
	})
}

// TestSlowIsNotSilent: a target that answers is not silent, even if it is slow, pauses briefly, or its path loses
// packets.
func TestSlowIsNotSilent(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		w.attach(t, gatewayAddr, &Responder{})
		var silences []time.Duration
		begin := time.Now()
		countSilences(t, w, func() { silences = append(silences, time.Since(begin)) })
		after(10 * time.Second)
		for range 200 { // a queue fills, to 1.6 s in four
			w.mu.Lock()
			w.delay += 4 * time.Millisecond
			w.mu.Unlock()
			after(20 * time.Millisecond)
		}
		after(10 * time.Second)
		w.mu.Lock()
		w.delay = 0
		w.mu.Unlock()
		after(10 * time.Second)
		for i := range 100 { // it pauses at varying times between two requests
			w.setDrop(func(_, to netip.AddrPort) bool { return to == gatewayAddr })
			after(180 * time.Millisecond)
			w.setDrop(nil)
			after(time.Second + time.Duration(i)*7*time.Millisecond)
		}
		lost := 0
		w.setDrop(func(netip.AddrPort, netip.AddrPort) bool { lost++; return lost%5 < 2 })
		after(20 * time.Second)
		if len(silences) > 0 {
			t.Errorf("silences at %v", silences)
		}
	})
}

// TestOwnStall: the own process was stopped, so that replies may be unread. It sends more requests, but a limited
// number.
func TestOwnStall(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		w.attach(t, gatewayAddr, nil)
		s := w.attach(t, nodeAddr, nil)
		p := countSilences(t, w, func() {})
		_ = s.Close() // the test calls step itself
		now := time.Now()
		p.await(now)
		steps := 0
		for silent := false; !silent; steps++ {
			now = now.Add(time.Second)
			_, silent, _, _ = p.step(now)
		}
		if steps != 2*quickProbes+1 {
			t.Errorf("silent after %d steps of a process that is late each time, want %d", steps, 2*quickProbes+1)
		}
	})
}

// TestLossIsNotSilence: single requests of a node, of which more than a third are lost in one of the directions, rarely
// are all lost for that long.
func TestLossIsNotSilence(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		w.attach(t, gatewayAddr, &Responder{})
		silences := 0
		probe(t, w.attach(t, nodeAddr, nil), ProbeConfig{
			Target: gatewayAddr, Interval: 250 * time.Millisecond, Timeout: 300 * time.Millisecond, Window: 1,
			OnSilence: func() { silences++ }, Patience: 120 * time.Millisecond,
		})
		random := rand.New(rand.NewPCG(1, 2))
		w.setDrop(func(netip.AddrPort, netip.AddrPort) bool { return random.Float64() < 0.2 })
		after(10 * time.Minute)
		if silences > 8 {
			t.Errorf("%d silences in ten minutes", silences)
		}
	})
}
