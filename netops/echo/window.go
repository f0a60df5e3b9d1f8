package echo

import (
	"math/bits"
	"net/netip"
	"slices"
	"time"
)

// window records the last requests of one prober in a ring, indexed by sequence number.
type window struct {
	slots []slot
	next  uint32 // sequence number of the next request
	tail  uint32 // no request before this one is outstanding
	fresh uint32 // all requests from this one on are newer than the newest answered one

	opened time.Time // time of the first reply; the zero value: none yet
}

type slot struct {
	state    slotState
	sequence uint32
	target   netip.AddrPort
	sent     time.Time
	rtt      time.Duration // of an answered request
}

type slotState uint8

const (
	unused slotState = iota
	outstanding
	answered
	lost
	early // without a reply, from before the first reply
)

// newWindow returns a window for at least n requests; a power of two, so that sequence numbers may wrap.
func newWindow(n int) window {
	return window{slots: make([]slot, 1<<bits.Len(uint(n-1)))}
}

func (w *window) at(sequence uint32) *slot { return &w.slots[int(sequence)%len(w.slots)] }

// send records a request to a target and returns its sequence number.
func (w *window) send(target netip.AddrPort, now time.Time) uint32 {
	sequence := w.next
	*w.at(sequence) = slot{state: outstanding, sequence: sequence, target: target, sent: now}
	w.next++
	if w.next-w.tail > uint32(len(w.slots)) {
		w.tail++
	}
	return sequence
}

// expire gives up the requests that were sent before the deadline. It returns the number of those that are newer than
// the newest answered one: an older one was lost on a path that has worked since.
func (w *window) expire(deadline time.Time) (given int) {
	for ; w.tail != w.next; w.tail++ {
		s := w.at(w.tail)
		if s.state != outstanding {
			continue
		}
		if s.sent.After(deadline) {
			return given
		}
		s.state = lost
		if !precedes(w.tail, w.fresh) {
			given++
		}
	}
	return given
}

// release excludes outstanding requests from both losses and outstanding requests. Their replies are still accepted.
func (w *window) release() {
	for i := range w.slots {
		if s := &w.slots[i]; s.state == outstanding {
			s.state = early
		}
	}
}

// sentTo reports whether a request was sent to that target. For requests that left the window, the answer is true.
func (w *window) sentTo(target netip.AddrPort, sequence uint32) bool {
	s := w.at(sequence)
	return s.state == unused || s.sequence != sequence || s.target == target
}

// oldest returns when the oldest outstanding request was sent; call expire before.
func (w *window) oldest() (sent time.Time, ok bool) {
	if w.tail == w.next {
		return time.Time{}, false
	}
	s := w.at(w.tail)
	return s.sent, s.state == outstanding
}

// fail records that a request could not be sent.
func (w *window) fail(sequence uint32) {
	if s := w.at(sequence); s.sequence == sequence && s.state == outstanding {
		s.state = lost
	}
}

// receive records a reply. A reply counts after its request was given up: it was slow, not lost. The second reply to a
// request does not count.
func (w *window) receive(sequence uint32, sent int64, now time.Time) (rtt time.Duration, ok bool) {
	s := w.at(sequence)
	if s.sequence != sequence || s.state == unused || s.state == answered || s.sent.UnixNano() != sent {
		return 0, false
	}
	s.state, s.rtt = answered, now.Sub(s.sent)
	if !precedes(sequence, w.fresh) {
		w.fresh = sequence + 1
	}
	return s.rtt, true
}

// begin makes an answered request the first one that counts: earlier ones measure the setup of the path instead of its
// loss or round trip time.
func (w *window) begin(sequence uint32, now time.Time) {
	w.opened = now
	for i := range w.slots {
		s := &w.slots[i]
		if (s.state == outstanding || s.state == lost) && precedes(s.sequence, sequence) {
			s.state = early
		}
	}
}

// precedes compares sequence numbers that may have wrapped (RFC 1982).
func precedes(a, b uint32) bool { return int32(a-b) < 0 }

// loss returns the number of lost requests among those sent since then, the number of requests with a known result, and
// when the last lost one was sent.
func (w *window) loss(since time.Time) (gone, known int, last time.Time) {
	for _, s := range w.slots {
		switch {
		case s.state != lost && s.state != answered || s.sent.Before(since):
			continue
		case s.state == lost:
			gone++
			if s.sent.After(last) {
				last = s.sent
			}
		}
		known++
	}
	return gone, known, last
}

// calm reports whether the window has no losses.
func (w *window) calm() bool {
	return !slices.ContainsFunc(w.slots, func(s slot) bool { return s.state == lost })
}

// median returns the median round trip time of the answered requests; zero without any. Requests before the first reply
// waited for the setup of the path, in a tunnel for its handshake: their minimum is used until there are newer ones.
func (w *window) median() time.Duration {
	var times, waited []time.Duration
	for _, s := range w.slots {
		switch {
		case s.state != answered:
		case s.sent.Before(w.opened):
			waited = append(waited, s.rtt)
		default:
			times = append(times, s.rtt)
		}
	}
	switch {
	case len(times) > 0:
		slices.Sort(times)
		return times[len(times)/2]
	case len(waited) > 0:
		return slices.Min(waited)
	}
	return 0
}
