package echo

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// quietly is a prober of a gateway that tells when that falls silent.
func quietly(t *testing.T, w *wire, told func()) *Prober {
	return probe(t, w.attach(t, nodeAddr, nil), ProbeConfig{
		Target: gatewayAddr, Interval: 20 * time.Millisecond, Calm: 250 * time.Millisecond, Timeout: 600 * time.Millisecond,
		Window: 512, OnSilence: told, Patience: 120 * time.Millisecond,
	})
}

// TestSilence: a target that ends is told once, within half a second, after some more requests; and again after it answered.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.attach(t, gatewayAddr, &Responder{})
		silences := 0
		p := quietly(t, w, func() { silences++ })
		atRest := p.Stats().Sent
		for round := 1; round <= 3; round++ {
			after(20*time.Second + time.Duration(round)*77*time.Millisecond)
			w.setDrop(func(_, to netip.AddrPort) bool { return to == gatewayAddr })
			sent := p.Stats().Sent
			if rest := sent - atRest; round == 1 && rest > 82 {
				t.Errorf("%d requests in 20 s to one that answers: more than one each calm interval", rest)
			}
			after(150 * time.Millisecond)
			if silences != round-1 {
				t.Errorf("told after 150 ms: a moment is no silence")
			}
			after(300 * time.Millisecond)
			if silences != round {
				t.Errorf("%d silences told after %d of 450 ms", silences, round)
			}
			if n := p.Stats().Sent - sent; n < 1+quickAsks || n > 2+quickAsks {
				t.Errorf("%d requests were left unanswered, want %d, and those that were due", n, quickAsks)
			}
			after(10 * time.Second)
			if silences != round {
				t.Errorf("%d silences told after %d long ones", silences, round)
			}
			w.setDrop(nil)
		}
	})
}

// TestSlowIsNotSilent: nothing is told of a target that answers, however slowly, of one that stands still for a moment, nor of a path that loses.
func TestSlowIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.attach(t, gatewayAddr, &Responder{})
		var told []time.Duration
		begin := time.Now()
		quietly(t, w, func() { told = append(told, time.Since(begin)) })
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
		if len(told) > 0 {
			t.Errorf("silences told at %v", told)
		}
	})
}

// TestOwnStall: the process that asks stood still, while answers arrived that it has not read. It asks again and again, but not forever.
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

// TestLossIsNotSilence: a node's single requests, of which more than a third are lost on the way there or back, seldom are all lost for
// so long.
func TestLossIsNotSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.attach(t, gatewayAddr, &Responder{})
		told := 0
		probe(t, w.attach(t, nodeAddr, nil), ProbeConfig{
			Target: gatewayAddr, Interval: 250 * time.Millisecond, Timeout: 300 * time.Millisecond, Window: 1,
			OnSilence: func() { told++ }, Patience: 120 * time.Millisecond,
		})
		random := rand.New(rand.NewPCG(1, 2))
		w.setDrop(func(netip.AddrPort, netip.AddrPort) bool { return random.Float64() < 0.2 })
		after(10 * time.Minute)
		if told > 8 {
			t.Errorf("%d silences told in ten minutes", told)
		}
	})
}
