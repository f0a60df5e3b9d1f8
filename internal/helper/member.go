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

// Parameters of a member's standing.
const (
	// After memberAnswers consecutive answers, and memberMoment since the first of them, a member is usable.
	memberAnswers = 3
	memberMoment  = time.Second
	// memberGone is the time since its last answer with a usable path after which a member is gone.
	memberGone = 3 * time.Second
	// memberPatience is the accepted delay of its answers. A gateway that is stopped for a fifth of a second, because
	// it gets no CPU time, is not left; after its end it is left within half a second, including echoes every fifth
	// of a second.
	memberPatience = 120 * time.Millisecond
)

// standing is the usability of a member of a group; a higher one is better.
type standing int

// The standings.
const (
	finished  standing = iota - 1 // it has announced its end, and no longer answers or cannot forward
	gone                          // no answer for long or ever, or never able to forward
	down                          // it does not answer, or cannot forward
	ending                        // it drains, and an echo is lost: it may have ended
	recovered                     // it has answered and can forward for less than memberMoment
	draining                      // it is about to end
	partial                       // it is usable, and reaches fewer nodes than another one
	usable
)

// member is one of several that share the packets for a peer: a gateway, for a node, or a tunnel, for a gateway. Its
// standing depends on its echoes only. The embedding type guards it by a lock. The zero value has not answered.
type member struct {
	wake    chan<- struct{} // triggers a pass; nil: there are no other members
	answers int             // consecutive, with a usable path
	since   time.Time       // time of the first of them
	good    time.Time       // time of the last answer with a usable path; zero: none
	noWay   bool            // from its last message
	drains  bool            // from its last message
	lost    bool            // the last echo, and the member drains
	state   standing
}

// answered handles an answer.
func (m *member) answered(c echo.Content) {
	if m.answers == 0 {
		m.since = time.Now()
	}
	m.answers++
	m.lost = m.lost && !c.Draining
	if !c.NoWay {
		m.good = time.Now()
	}
	m.announced(c)
}

// announced handles the state in a member's message.
func (m *member) announced(c echo.Content) {
	m.noWay, m.drains = c.NoWay, c.Draining
	if m.noWay {
		m.answers = 0
	}
	if m.lost && !m.drains { // a successor
		m.answers, m.lost, m.good = 0, false, time.Time{}
	}
	m.judge()
}

// missed handles consecutive lost echoes: from least on, the member counts as not answering. A draining member ends
// soon: after its first lost echo, any other member is better if it answers.
func (m *member) missed(consecutive, least int) {
	m.lost = m.drains
	if consecutive >= least {
		m.answers = 0
	}
	m.judge()
}

// silent handles missing answers. A draining member has been left at its first loss, unless the others are worse.
func (m *member) silent() {
	if !m.drains {
		m.answers = 0
	}
	m.judge()
}

// judge updates the standing, and triggers a pass if it changes.
func (m *member) judge() {
	before := m.state
	switch {
	case m.answers == 0 && m.drains:
		m.state = finished
	case m.answers == 0 && time.Since(m.good) >= memberGone:
		m.state = gone
	case m.answers == 0:
		m.state = down
	case m.lost:
		m.state = ending
	case m.drains:
		m.state = draining
	case before == usable || m.answers >= memberAnswers && time.Since(m.since) >= memberMoment:
		m.state = usable
	default:
		m.state = recovered
	}
	if m.state != before {
		notify(m.wake)
	}
}

// reason returns the reason for which a member is not used.
func (m *member) reason() string {
	switch {
	case m.state == usable:
		return "standby"
	case m.state == draining || m.state == ending:
		return "draining"
	case m.state == finished:
		return "it has ended"
	case m.state == recovered:
		return "it has answered for less than " + memberMoment.String()
	case m.noWay:
		return "it has no way on"
	}
	return "no answer"
}

// debounced is a condition that becomes true, or false, after it has been so for memberMoment. The zero value is false.
type debounced struct {
	is    atomic.Bool
	since time.Time // time since which it differs; zero: it does not
}

// set sets whether the condition holds now, and reports whether that changes the debounced value.
func (h *debounced) set(holds bool) (news bool) {
	h.since = cmp.Or(h.since, time.Now())
	if holds == h.is.Load() || time.Since(h.since) >= memberMoment {
		h.since, news = time.Time{}, h.is.Swap(holds) != holds
	}
	return news
}

// unusedOf returns, by index, which members carry no packets: all except the best, and in mode active-standby all
// except the first of these. At least one always carries packets.
func unusedOf(all []standing, mode records.GatewayMode) []bool {
	best := slices.Max(all)
	unused := make([]bool, len(all))
	for i, s := range all {
		unused[i] = s != best || mode == records.ActiveStandby && i != slices.Index(all, best)
	}
	return unused
}
