package membership

import (
	"cmp"
	"slices"
	"time"

	"liqonet.io/liqonet/netops/echo"
)

// Parameters of a member's standing.
const (
	// After Answers consecutive answers, and Moment since the first of them, a member is usable.
	Answers = 3
	Moment  = time.Second
	// GoneAfter is the time since its last answer with a usable path after which a member is gone.
	GoneAfter = 3 * time.Second
	// Patience is the accepted delay of its answers. A gateway that is stopped for a fifth of a second, because it
	// gets no CPU time, is not left; after its end it is left within half a second, including echoes every fifth of a
	// second.
	Patience = 120 * time.Millisecond
)

// Standing is the usability of a member of a group; a higher one is better.
type Standing int

// The standings.
const (
	Finished  Standing = iota - 1 // it has announced its end, and no longer answers or cannot forward
	Gone                          // no answer for long or ever, or never able to forward
	Down                          // it does not answer, or cannot forward
	Ending                        // it drains, and an echo is lost: it may have ended
	Recovered                     // it answers and can forward: for less than Answers and Moment, or it is held
	Draining                      // it would be usable, and is about to end
	Partial                       // it is usable, and reaches fewer nodes than another one
	Usable
)

// Member is one of several that share the packets for a peer: a gateway, for a node, or a tunnel, for a gateway. Its
// standing depends on its echoes only. The zero value has not answered.
type Member struct {
	Wake    chan<- struct{} // triggers a pass; nil: there are no other members
	Nodes   uint32          // number that it reaches, for Compare; zero: not known
	answers int             // consecutive, with a usable path
	since   time.Time       // time of the first of them
	good    time.Time       // time of the last answer with a usable path; zero: none
	noWay   bool            // from its last message
	drains  bool            // from its last message
	lost    bool            // the last echo, and the member drains
	held    bool            // it does not become usable
	fewer   bool            // another member reaches more nodes, for Moment
	differs time.Time       // since when fewer is outdated; zero: it is not
	state   Standing
}

// Standing returns the current standing.
func (m *Member) Standing() Standing { return m.state }

// Answered handles an answer.
func (m *Member) Answered(c echo.Content, now time.Time) {
	if m.answers == 0 {
		m.since = now
	}
	m.answers++
	m.lost = m.lost && !c.Draining
	if !c.NoWay {
		m.good = now
	}
	m.Announced(c, now)
}

// Announced handles the state in a member's message.
func (m *Member) Announced(c echo.Content, now time.Time) {
	m.noWay, m.drains = c.NoWay, c.Draining
	if m.noWay {
		m.answers = 0
	}
	if m.lost && !m.drains { // a successor
		m.answers, m.lost, m.good = 0, false, time.Time{}
	}
	m.judge(now)
}

// Missed handles consecutive lost echoes: from least on, the member counts as not answering. A draining member ends
// soon: after its first lost echo, any other member is better if it answers.
func (m *Member) Missed(consecutive, least int, now time.Time) {
	m.lost = m.drains
	if consecutive >= least {
		m.answers = 0
	}
	m.judge(now)
}

// Silent handles missing answers. A draining member may have ended, but any other one that does not answer is worse.
func (m *Member) Silent(now time.Time) {
	if m.drains {
		m.lost = true
	} else {
		m.answers = 0
	}
	m.judge(now)
}

// Hold prevents a recovered member from becoming usable, until it is called again with false.
func (m *Member) Hold(held bool, now time.Time) {
	m.held = held
	m.judge(now)
}

// Fewer handles whether another member reaches more nodes now. It counts once it has been so for Moment.
func (m *Member) Fewer(fewer bool, now time.Time) {
	m.differs = cmp.Or(m.differs, now)
	switch {
	case fewer == m.fewer:
		m.differs = time.Time{}
	case now.Sub(m.differs) >= Moment:
		m.fewer, m.differs = fewer, time.Time{}
		m.judge(now)
	}
}

// judge updates the standing, and triggers a pass if it changes.
func (m *Member) judge(now time.Time) {
	before := m.state
	switch {
	case m.answers == 0 && m.drains:
		m.state = Finished
	case m.answers == 0 && now.Sub(m.good) >= GoneAfter:
		m.state = Gone
	case m.answers == 0:
		m.state = Down
	case m.lost:
		m.state = Ending
	case m.held || m.answers < Answers || now.Sub(m.since) < Moment:
		m.state = Recovered
	case m.drains:
		m.state = Draining
	case m.fewer:
		m.state = Partial
	default:
		m.state = Usable
	}
	if m.state != before {
		select {
		case m.Wake <- struct{}{}:
		default: // a pass is due, or there are no other members
		}
	}
}

// Reason returns the reason for which a member is not used.
func (m *Member) Reason() string {
	switch {
	case m.state == Usable:
		return "standby"
	case m.state == Partial:
		return "other gateways reach more nodes"
	case m.state == Draining || m.state == Ending:
		return "draining"
	case m.state == Finished:
		return "it has ended"
	case m.state == Recovered:
		return "it has answered for less than " + Moment.String()
	case m.noWay:
		return "it has no way on"
	}
	return "no answer"
}

// Unused returns, by index, which members carry no packets: all except the best, and with standby all except the
// first of these. At least one always carries packets.
func Unused(all []Standing, standby bool) []bool {
	best := slices.Max(all)
	unused := make([]bool, len(all))
	for i, s := range all {
		unused[i] = s != best || standby && i != slices.Index(all, best)
	}
	return unused
}

// Compare updates which tunnels lead to gateways that reach fewer nodes than another one does. A node that no gateway
// reaches does not matter.
func Compare(tunnels []*Member, now time.Time) {
	most := uint32(0)
	for _, t := range tunnels {
		if t.state == Recovered || t.state >= Partial {
			most = max(most, t.Nodes)
		}
	}
	for _, t := range tunnels {
		t.Fewer(t.Nodes != 0 && t.Nodes < most, now)
	}
}

// Forwards reports whether any of a gateway's tunnels is a way on: one that is draining, partial or usable. A recovered
// one does not count, so that a peer cannot make nodes change their gateways faster than once in Moment.
func Forwards(tunnels []*Member) bool {
	return slices.ContainsFunc(tunnels, func(t *Member) bool { return t.state >= Draining })
}
