//go:build linux

package helper

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops/echo"
)

// Bounds of a member's coming and going.
const (
	// memberAnswers in a row, and memberMoment since the first of them, make a member usable.
	memberAnswers = 3
	memberMoment  = time.Second
	// memberGone after its last answer with a way on, a member is gone.
	memberGone = 3 * time.Second
	// memberPatience is how late its answers may be. A gateway that stands still for a fifth of a second, because it
	// gets no processor, is not left; one that has ended is left within half a second, echoes every fifth of a second
	// included.
	memberPatience = 120 * time.Millisecond
)

// standing is what a member of a group can be used for; a higher one is better.
type standing int

// The standings.
const (
	finished standing = iota - 1 // it has said that it drains, and answers no more, or has no way on
	gone                         // it has not answered for long, or never, or never had a way on
	useless                      // it does not answer, or has no way on
	ending                       // it drains, and an echo is lost: it may have ended
	returned                     // it answers and has a way on, since less than a moment
	draining                     // it is about to end
	partial                      // it is usable, and reaches fewer nodes than another one
	usable
)

// member is one of several that share the packets for a peer: a gateway, to a node, or a tunnel, to a gateway. Nothing
// but its echoes decides what it is used for. Who embeds it guards it by a lock. The zero value has not answered.
type member struct {
	wake    chan<- struct{} // calls for a pass; nil: there are no other members
	answers int             // in a row, with a way on
	since   time.Time       // of the first of them
	good    time.Time       // of the last answer with a way on; zero: there was none
	noWay   bool            // as it said last
	drains  bool            // likewise
	lost    bool            // the last echo, and the member drains
	stands  standing
}

// answered notes an answer.
func (m *member) answered(c echo.Content) {
	if m.answers == 0 {
		m.since = time.Now()
	}
	m.answers++
	m.lost = m.lost && !c.Draining
	if !c.NoWay {
		m.good = time.Now()
	}
	m.says(c)
}

// says notes what a member says of itself.
func (m *member) says(c echo.Content) {
	m.noWay, m.drains = c.NoWay, c.Draining
	if m.noWay {
		m.answers = 0
	}
	if m.lost && !m.drains { // another one in its place
		m.answers, m.lost, m.good = 0, false, time.Time{}
	}
	m.judge()
}

// missed notes that so many echoes in a row are lost: from least on, the member does not answer any more. One that
// drains ends soon: after the first that is lost, any other one that answers is better, but not one that does not.
func (m *member) missed(consecutive, least int) {
	m.lost = m.drains
	if consecutive >= least {
		m.answers = 0
	}
	m.judge()
}

// silent notes that its answers stay away. One that drains has been left at its first loss, unless the others are
// worse.
func (m *member) silent() {
	if !m.drains {
		m.answers = 0
	}
	m.judge()
}

// judge decides anew, and calls for a pass if that changes anything.
func (m *member) judge() {
	before := m.stands
	switch {
	case m.answers == 0 && m.drains:
		m.stands = finished
	case m.answers == 0 && time.Since(m.good) >= memberGone:
		m.stands = gone
	case m.answers == 0:
		m.stands = useless
	case m.lost:
		m.stands = ending
	case m.drains:
		m.stands = draining
	case before == usable || m.answers >= memberAnswers && time.Since(m.since) >= memberMoment:
		m.stands = usable
	default:
		m.stands = returned
	}
	if m.stands != before {
		notify(m.wake)
	}
}

// reason is why a member is not used.
func (m *member) reason() string {
	switch {
	case m.stands == usable:
		return "standby"
	case m.stands == draining || m.stands == ending:
		return "draining"
	case m.stands == finished:
		return "it has ended"
	case m.stands == returned:
		return "it has answered for less than " + memberMoment.String()
	case m.noWay:
		return "it has no way on"
	}
	return "no answer"
}

// held is a condition, damped: it becomes true, or false, after it has been so for a moment. The zero value is false.
type held struct {
	is    atomic.Bool
	since time.Time // from when on it was the other way round; zero: it is not
}

// note notes whether the condition holds now, and reports whether that changes what counts.
func (h *held) note(holds bool) (news bool) {
	h.since = cmp.Or(h.since, time.Now())
	if holds == h.is.Load() || time.Since(h.since) >= memberMoment {
		h.since, news = time.Time{}, h.is.Swap(holds) != holds
	}
	return news
}

// unusedOf tells, by index, which members carry no packets: all but the best, and in mode active-standby all but the
// first of these. At least one always carries packets.
func unusedOf(all []standing, mode records.GatewayMode) []bool {
	best := slices.Max(all)
	unused := make([]bool, len(all))
	for i, s := range all {
		unused[i] = s != best || mode == records.ActiveStandby && i != slices.Index(all, best)
	}
	return unused
}
