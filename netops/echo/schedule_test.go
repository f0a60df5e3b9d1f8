package echo

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// TestProbersSendTogether: probers that start at different times send their requests at the same times.
func TestProbersSendTogether(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
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

// TestSendNow: a request is sent immediately, and the next one at its regular time.
func TestSendNow(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		w.attach(t, gatewayAddr, &Responder{})
		begin := time.Now()
		p := probe(t, w.attach(t, nodeAddr, nil), ProbeConfig{Target: gatewayAddr, Interval: 10 * time.Second})
		after(300 * time.Millisecond)
		p.SendNow()
		after(10 * time.Second)
		if stats := p.Stats(); stats.Sent != 3 || stats.Loss != 0 {
			t.Errorf("stats %+v: want a request at the beginning, at once, and at its time", stats)
		}
		p.Stop()
		p.SendNow()
		after(time.Minute)
		w.expectSends(t, begin, 0, 0, 300, 300, 10000, 10000) // requests and answers
	})
}

// TestCalm: requests are rare while none is lost and while there are no replies, and frequent while some are answered,
// until a whole window is answered again.
func TestCalm(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		w.attach(t, gatewayAddr, &Responder{})
		p := probe(t, w.attach(t, nodeAddr, nil), ProbeConfig{
			Target: gatewayAddr, Interval: 100 * time.Millisecond, Calm: time.Second, Timeout: 300 * time.Millisecond, Window: 8,
		})
		sentWithin := func(d time.Duration) uint64 {
			before := p.Stats().Sent
			after(d)
			return p.Stats().Sent - before
		}
		after(50 * time.Millisecond)
		if n := sentWithin(10 * time.Second); n != 10 {
			t.Errorf("%d requests in 10 s of calm, want 10", n)
		}
		requests := 0
		w.setDrop(func(_, to netip.AddrPort) bool {
			if to == gatewayAddr {
				requests++
			}
			return to == gatewayAddr && requests%2 == 0
		})
		after(3 * time.Second)
		if n := sentWithin(time.Second); n != 10 {
			t.Errorf("%d requests in a second in which half is lost, want 10", n)
		}
		w.setDrop(func(_, _ netip.AddrPort) bool { return true })
		after(3 * time.Second)
		if n := sentWithin(10 * time.Second); n != 10 {
			t.Errorf("%d requests in 10 s of silence, want 10", n)
		}
		w.setDrop(nil)
		if n := sentWithin(3 * time.Second); n < 8 {
			t.Errorf("%d requests in 3 s after a silence, want a window of 8 at least", n)
		}
		after(time.Second)
		if n := sentWithin(10 * time.Second); n != 10 {
			t.Errorf("%d requests in 10 s once a window is answered again, want 10", n)
		}
	})
}

// TestTrain: while calm, several requests are sent together.
func TestTrain(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		begin := time.Now()
		probe(t, w.attach(t, nodeAddr, nil), ProbeConfig{
			Target: gatewayAddr, Interval: 100 * time.Millisecond, Calm: time.Second, Timeout: 300 * time.Millisecond, Train: 3,
		})
		after(2 * time.Second)
		w.expectSends(t, begin, 0, 0, 0, 1000, 1000, 1000, 2000, 2000, 2000)
	})
}

// expectSends compares the times at which packets were sent, in milliseconds since begin.
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
