package membership

import (
	"slices"
	"time"
)

// Times since the last echo of a node, or of a gateway of the peer.
const (
	// LiveFor is the time for which a sender counts as alive, and is waited for.
	LiveFor = 4 * time.Second
	// AnyNodeWithin is the time without an echo of any node after which a gateway has no way on to nodes: some
	// intervals of its nodes.
	AnyNodeWithin = 1500 * time.Millisecond
	// ReachedWithin is the time without a node's echo, or without an answer to it, after which a gateway does not reach
	// the node: three echoes of a node that has several gateways, and those that it adds when answers are missing.
	ReachedWithin = 800 * time.Millisecond
)

// leavingChecks consecutive checks must find no sender, because of packets in flight. Checks count and not time: a
// process without CPU time has not read the contents of its sockets and queues.
const leavingChecks = 10

// Sender is a node or a gateway of the peer that may send packets of pods to a gateway, as of its last echo. The zero
// value has sent none.
type Sender struct {
	Echo   time.Time // zero: none
	Unused bool      // it sends no packets of pods to this gateway
	Deaf   bool      // it receives no answers from this gateway
}

// Live reports whether its echoes arrive.
func (s Sender) Live(now time.Time) bool { return now.Sub(s.Echo) < LiveFor }

// Reached reports whether its echoes have arrived within a time, and are answered.
func (s Sender) Reached(within time.Duration, now time.Time) bool {
	return now.Sub(s.Echo) < within && !s.Deaf
}

// sends reports whether it is alive and has not reported since a time that it sends no packets of pods.
func (s Sender) sends(since, now time.Time) bool {
	return s.Live(now) && (!s.Unused || s.Echo.Before(since))
}

// Leaving decides when a gateway may end, if its cluster has others. Once all live senders have reported that they send
// their packets through others, the gateway announces that it has no way on, and they have to repeat that report for a
// moment: from then on none of them returns to it, even if another gateway does not answer. The zero value stays.
type Leaving struct {
	draining bool
	ending   time.Time // since when it announces that it has no way on; zero: it does not
	checks   int       // consecutive ones without a sender
}

// Drain begins.
func (l *Leaving) Drain() { l.draining = true }

// Announces returns what all messages announce.
func (l *Leaving) Announces() (draining, noWay bool) { return l.draining, !l.ending.IsZero() }

// Check handles the current senders, and reports whether the gateway may end. announce is true if it has a new
// announcement.
func (l *Leaving) Check(all []Sender, now time.Time) (over, announce bool) {
	if !l.Idle(all, now) {
		l.checks = 0
		return false, false
	}
	l.checks++
	if announce = l.ending.IsZero(); announce {
		l.ending, l.checks = now, 0
	}
	return l.checks >= leavingChecks, announce
}

// Idle reports whether none of the senders that are alive may send packets of pods: all have reported so, since the
// announcement of no way on if there is one.
func (l *Leaving) Idle(all []Sender, now time.Time) bool {
	return !slices.ContainsFunc(all, func(s Sender) bool { return s.sends(l.ending, now) })
}
