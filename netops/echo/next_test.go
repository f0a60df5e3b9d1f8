package echo

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestSwitchTarget: a late reply of the previous target counts, a reply of any other address does not.
func TestSwitchTarget(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		w.delay = 750 * time.Millisecond
		w.attach(t, gatewayAddr, &Responder{})
		w.attach(t, otherAddr, &Responder{})
		s := w.attach(t, nodeAddr, nil)
		var p *Prober
		targets := []netip.AddrPort{gatewayAddr, otherAddr}
		var lost int
		p = probe(t, s, ProbeConfig{Target: targets[0], Interval: 2 * time.Second, OnLost: func(int) {
			lost++
			assert.NoError(t, p.SwitchTarget(targets[lost%2]))
		}})
		after(1600 * time.Millisecond) // the first request was given up after a second, and answered after 1.5
		if stats := p.Stats(); lost != 1 || stats.Received != 1 || stats.RTT != 1500*time.Millisecond {
			t.Errorf("%d lost, stats %+v", lost, stats)
		}
		after(30 * time.Second)
		if stats := p.Stats(); lost != 1 || stats.Loss != 0 || time.Since(stats.LastReply) > 2*time.Second {
			t.Errorf("%d lost, stats %+v", lost, stats)
		}
		forged, err := Message{Kind: Reply, Session: p.session, Sequence: p.window.next - 1, Size: MinSize}.AppendTo(nil)
		require.NoError(t, err)
		before := s.Ignored()[ReasonSource]
		w.ends[nodeAddr].in <- packet{forged, gatewayAddr}
		synctest.Wait()
		if n := s.Ignored()[ReasonSource]; n != before+1 {
			t.Errorf("%d answers of a target that was not asked are ignored, want one", n-before)
		}
		if err := p.SwitchTarget(netip.AddrPort{}); err == nil {
			t.Error("took a target without an address")
		}
	})
}

// TestSwitchTargetWithoutReplies: targets that do not answer get one request per interval and per timeout, 60 and 115
// in 30 s.
func TestSwitchTargetWithoutReplies(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		w.attach(t, gatewayAddr, nil)
		w.attach(t, otherAddr, nil)
		targets := []netip.AddrPort{gatewayAddr, otherAddr}
		lost := 0
		var p *Prober
		p = probe(t, w.attach(t, nodeAddr, nil), ProbeConfig{
			Target: targets[0], Interval: 500 * time.Millisecond, Timeout: 260 * time.Millisecond, OnLost: func(int) {
				lost++
				assert.NoError(t, p.SwitchTarget(targets[lost%2]))
			},
		})
		after(30 * time.Second)
		if most := uint64(178); p.Stats().Sent > most {
			t.Errorf("%d requests in 30 s, want %d at most", p.Stats().Sent, most)
		}
	})
}

// TestEager: a target that has not answered is asked again soon, then less often. One that has answered, and a slow
// one, get the requests of any other.
func TestEager(t *testing.T) {
	begin := func(t *testing.T, w *wire, answers bool) (*Prober, time.Time) {
		var p *Prober
		w.attach(t, gatewayAddr, map[bool]*Responder{true: {}}[answers])
		at := time.Now()
		p = probe(t, w.attach(t, nodeAddr, nil), ProbeConfig{
			Target: gatewayAddr, Interval: 2 * time.Second, Eager: 100 * time.Millisecond, OnLost: func(int) {
				assert.NoError(t, p.SwitchTarget(gatewayAddr))
			},
		})
		return p, at
	}
	onWire(t, func(t *testing.T, w *wire) {
		_, at := begin(t, w, false)
		after(5 * time.Second)
		w.expectSends(t, at, 0, 100, 300, 700, 1500, 2000, 2500, 3500, 4000, 4500) // and every two seconds
	})
	onWire(t, func(t *testing.T, w *wire) {
		p, at := begin(t, w, true)
		after(1900 * time.Millisecond)
		w.setDrop(func(_, _ netip.AddrPort) bool { return true })
		after(2 * time.Second)
		w.expectSends(t, at, 0, 0, 2000, 3000) // and the answer
		if stats := p.Stats(); stats.Lost != 1 {
			t.Errorf("%d losses after an answer, want one a second", stats.Lost)
		}
	})
	onWire(t, func(t *testing.T, w *wire) {
		w.delay = 300 * time.Millisecond
		p, _ := begin(t, w, true)
		after(650 * time.Millisecond)
		if stats := p.Stats(); stats.Received == 0 || stats.Lost != 0 || stats.RTT != 600*time.Millisecond {
			t.Errorf("stats %+v: want the answer to the first request", stats)
		}
	})
}

// TestSwitchTargetWithoutRoute: a target that cannot be sent to does not occupy a core.
func TestSwitchTargetWithoutRoute(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		var p *Prober
		lost := 0
		p = probe(t, w.attach(t, nodeAddr, nil), ProbeConfig{Target: gatewayAddr, Interval: 2 * time.Second, OnLost: func(int) {
			if lost++; lost < 10_000 { // the test must end
				assert.NoError(t, p.SwitchTarget(gatewayAddr))
			}
		}})
		after(10 * time.Second)
		if sent := p.Stats().Sent; sent > 15 {
			t.Errorf("%d requests in 10 s, want 15 at most", sent)
		}
	})
}

// TestEagerOnce checks that another target, which the peer can cause, is not asked eagerly again.
func TestEagerOnce(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		p := probe(t, w.attach(t, nodeAddr, nil), ProbeConfig{Target: gatewayAddr, Interval: 2 * time.Second, Eager: 100 * time.Millisecond})
		p.cfg.OnLost = func(int) { assert.NoError(t, p.SwitchTarget(gatewayAddr)) }
		after(5 * time.Second)
		before := p.Stats().Sent
		assert.NoError(t, p.SetTarget(netip.AddrPortFrom(nodeAddr.Addr(), 9)))
		after(900 * time.Millisecond)
		if sent := p.Stats().Sent - before; sent > 2 {
			t.Errorf("%d requests in 0.9 s, want one, and one in turn", sent)
		}
	})
}
