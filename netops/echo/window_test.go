package echo

import (
	"math"
	"testing"
	"time"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return start.Add(d) }

// share returns the share of lost requests.
func share(w window) float64 {
	gone, known, _ := w.loss(time.Time{})
	if known == 0 {
		return 0
	}
	return float64(gone) / float64(known)
}

// TestWindowLossOfASpan: losses before the span do not count.
func TestWindowLossOfASpan(t *testing.T) {
	w := newWindow(8)
	for i := range 8 {
		if sequence := w.send(gatewayAddr, at(time.Duration(i)*time.Second)); i%2 == 0 {
			w.receive(sequence, at(time.Duration(i)*time.Second).UnixNano(), at(time.Duration(i)*time.Second))
		}
	}
	w.expire(at(time.Minute))
	gone, known, last := w.loss(at(4 * time.Second))
	if gone != 2 || known != 4 || !last.Equal(at(7*time.Second)) {
		t.Errorf("%d of %d lost, the last of %v: want 2 of 4, the last of %v", gone, known, last, at(7*time.Second))
	}
}

func TestWindowLossCountsWhatIsKnown(t *testing.T) {
	w := newWindow(4)
	if share(w) != 0 || w.median() != 0 {
		t.Errorf("empty window: loss %v, median %v", share(w), w.median())
	}
	for i := range 4 {
		w.send(gatewayAddr, at(time.Duration(i)*time.Second))
	}
	if _, ok := w.receive(1, at(time.Second).UnixNano(), at(1100*time.Millisecond)); !ok {
		t.Error("answer to request 1 refused")
	}
	if given := w.expire(at(2 * time.Second)); given != 1 {
		t.Errorf("gave up %d requests, want number 2 alone: 0 was overtaken by 1", given)
	}
	if got, want := share(w), 2.0/3; got != want {
		t.Errorf("loss %v, want %v: two lost, one answered, one outstanding", got, want)
	}
	if sent, ok := w.oldest(); !ok || !sent.Equal(at(3*time.Second)) {
		t.Errorf("oldest outstanding %v, %v", sent, ok)
	}
}

func TestWindowForgetsWhatIsOld(t *testing.T) {
	w := newWindow(4)
	for i := range 8 {
		now := at(time.Duration(i) * time.Second)
		sequence := w.send(gatewayAddr, now)
		if i >= 4 {
			w.receive(sequence, now.UnixNano(), now.Add(time.Duration(i)*time.Millisecond))
		}
	}
	w.expire(at(time.Hour))
	if share(w) != 0 || w.median() != 6*time.Millisecond {
		t.Errorf("loss %v, median %v; want 0 and 6ms of 4, 5, 6, 7", share(w), w.median())
	}
}

func TestWindowAnswersCountOnce(t *testing.T) {
	w := newWindow(4)
	sequence := w.send(gatewayAddr, start)
	w.expire(at(time.Second))
	if share(w) != 1 {
		t.Errorf("loss %v before the late answer", share(w))
	}
	if _, ok := w.receive(sequence, start.UnixNano()+1, at(2*time.Second)); ok {
		t.Error("took an answer that bears another time")
	}
	if rtt, ok := w.receive(sequence, start.UnixNano(), at(2*time.Second)); !ok || rtt != 2*time.Second {
		t.Errorf("late answer: %v, %v", rtt, ok)
	}
	if share(w) != 0 {
		t.Errorf("loss %v after the late answer", share(w))
	}
	if _, ok := w.receive(sequence, start.UnixNano(), at(2*time.Second)); ok {
		t.Error("took the same answer twice")
	}
	if _, ok := w.receive(sequence+4, start.UnixNano(), at(2*time.Second)); ok {
		t.Error("took an answer to a request of the same place that was never sent")
	}
}

func TestWindowBegins(t *testing.T) {
	w := newWindow(8)
	for i := range 4 {
		w.send(gatewayAddr, at(time.Duration(i)*time.Second))
	}
	w.expire(at(time.Second)) // 0 and 1; 2 is outstanding
	w.receive(3, at(3*time.Second).UnixNano(), at(3*time.Second))
	w.begin(3, at(3*time.Second))
	w.expire(at(time.Minute))
	if share(w) != 0 {
		t.Errorf("loss %v of what was asked before the beginning", share(w))
	}
	for _, sequence := range []uint32{0, 2} { // one given up, one outstanding
		sent := at(time.Duration(sequence) * time.Second)
		if rtt, ok := w.receive(sequence, sent.UnixNano(), at(4*time.Second)); !ok || rtt != at(4*time.Second).Sub(sent) {
			t.Errorf("late answer to request %d: %v, %v", sequence, rtt, ok)
		}
	}
}

// TestWindowBeforeTheBeginning: requests that waited for the setup of the path do not count for the round trip time.
func TestWindowBeforeTheBeginning(t *testing.T) {
	const rtt = 10 * time.Millisecond
	w := newWindow(8)
	for i := range 4 {
		w.send(gatewayAddr, at(time.Duration(i)*time.Second))
	}
	opened := at(3*time.Second + rtt)
	w.begin(0, opened)
	for i := range 4 {
		w.receive(uint32(i), at(time.Duration(i)*time.Second).UnixNano(), opened)
	}
	if got := w.median(); got != rtt {
		t.Errorf("median %v of what waited, want that of the last, %v", got, rtt)
	}
	sent := at(4 * time.Second)
	w.receive(w.send(gatewayAddr, sent), sent.UnixNano(), sent.Add(2*rtt))
	if got := w.median(); got != 2*rtt {
		t.Errorf("median %v, want that of what did not wait, %v", got, 2*rtt)
	}
}

func TestWindowSequenceWraps(t *testing.T) {
	w := newWindow(5)
	w.next, w.tail, w.fresh = math.MaxUint32-1, math.MaxUint32-1, math.MaxUint32-1
	for range 4 {
		sequence := w.send(gatewayAddr, start)
		if _, ok := w.receive(sequence, start.UnixNano(), start); !ok {
			t.Errorf("answer to request %d refused", sequence)
		}
	}
	if given := w.expire(at(time.Hour)); given != 0 || w.tail != 2 {
		t.Errorf("gave up %d, tail %d", given, w.tail)
	}
	w.send(gatewayAddr, start)
	if given := w.expire(at(time.Hour)); given != 1 {
		t.Errorf("gave up %d after the wrap, want 1", given)
	}
}
