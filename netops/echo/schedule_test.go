package echo

import (
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
