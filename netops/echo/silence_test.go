package echo

import (
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// quietly is a prober of a gateway that counts its silences.
func quietly(t *testing.T, w *wire, silent func()) *Prober {
	return probe(t, w.attach(t, nodeAddr, nil), ProbeConfig{
		Target: gatewayAddr, Interval: 20 * time.Millisecond, Calm: 250 * time.Millisecond, Timeout: 600 * time.Millisecond,
		Window: 512, OnSilence: silent, Patience: 120 * time.Millisecond,
	})
}

// TestSilence: a target that ends is silent once, within half a second, after some more requests; and again after it
// answered.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.attach(t, gatewayAddr, &Responder{})
		var count atomic.Int64
		p := quietly(t, w, func() { count.Add(1) })
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
			if n := p.Stats().Sent - sent; n < 1+quickAsks || n > 2+quickAsks {
				t.Errorf("%d requests were left unanswered, want %d, and those that were due", n, quickAsks)
			}
			after(10 * time.Second)
			if n := int(count.Load()); n != round {
				t.Errorf("%d silences after %d long ones", n, round)
			}
			w.setDrop(nil)
		}
	})
}

// TestSlowIsNotSilent: a target that answers is not silent, however slowly it does, nor if it stands still for a
// moment, nor by a path that loses.
func TestSlowIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.attach(t, gatewayAddr, &Responder{})
		var silences []time.Duration
		begin := time.Now()
		quietly(t, w, func() { silences = append(silences, time.Since(begin)) })
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
		for i := range 100 { // it stands still at any time between two requests
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

// TestOwnStall: the process that asks stood still, while answers arrived that it has not read. It asks again and again,
// but not forever.
func TestOwnStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.attach(t, gatewayAddr, nil)
		s := w.attach(t, nodeAddr, nil)
		p := quietly(t, w, func() {})
		_ = s.Close() // the test takes the steps
		now := time.Now()
		p.listen(now)
		steps := 0
		for silent := false; !silent; steps++ {
			now = now.Add(time.Second)
			_, silent, _, _ = p.step(now)
		}
		if steps != 2*quickAsks+1 {
			t.Errorf("silent after %d steps of a process that is late each time, want %d", steps, 2*quickAsks+1)
		}
	})
}

// TestLossIsNotSilence: a node's single requests, of which more than a third are lost on the way there or back, seldom
// are all lost for so long.
func TestLossIsNotSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
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
