package membership

import "time"

// Times of a tunnel that another transport can carry.
const (
	// DialAfter is the silence of the tunnel after which the other transport is made ready: more than the second that
	// echoes of a calm tunnel are apart.
	DialAfter = 1500 * time.Millisecond
	// TryEvery is the interval of the probes of a try of UDP, and TryAnswers the number that must be answered without a
	// loss before UDP has the packets back.
	TryEvery   = 250 * time.Millisecond
	TryAnswers = 20
	// EndAfter is the silence after which a transport that cannot connect gives the packets back.
	EndAfter = 5 * time.Second
	// FirstTry is the pause between the first tries, and TryPause the longest one; each is twice the one before.
	FirstTry = time.Second
	TryPause = 30 * time.Second
	// Relapse is the time after a return to UDP within which another silence makes that return a failed one: after it,
	// the first pause is this long, and twice as long after each further one, up to RelapsePause.
	Relapse      = time.Minute
	RelapsePause = 10 * time.Minute
)

// Carrying decides whether another transport than UDP carries the packets of a tunnel, and when UDP is tried again. The
// zero value: UDP does.
type Carrying struct {
	on       bool
	since    time.Time // of on; when UDP has got the packets back, else
	pause    time.Duration
	relapses time.Duration // least pause, because UDP was silent soon after it had the packets back
	next     time.Time     // of the next try
	trying   bool
	answers  int // of this try
}

// On reports whether the other transport has the packets, and since when.
func (c *Carrying) On() (bool, time.Time) { return c.on, c.since }

// Begin gives the packets to the other transport.
func (c *Carrying) Begin(now time.Time) {
	if c.on {
		return
	}
	if !c.since.IsZero() && now.Sub(c.since) < Relapse {
		c.relapses = min(max(2*c.relapses, Relapse), RelapsePause)
	} else {
		c.relapses = 0
	}
	first := now.Add(c.relapses)
	*c = Carrying{on: true, since: now, relapses: c.relapses, pause: max(FirstTry, c.relapses), next: first}
}

// End gives the packets back to UDP although it was not tried: the other transport does not carry them either.
func (c *Carrying) End() { *c = Carrying{} }

// Try reports whether a try of UDP begins now.
func (c *Carrying) Try(now time.Time) bool {
	if !c.on || c.trying || now.Before(c.next) {
		return false
	}
	c.trying, c.answers = true, 0
	return true
}

// Answered handles the answer to a probe, and reports whether UDP has the packets back.
func (c *Carrying) Answered(now time.Time) bool {
	if !c.trying {
		return false
	}
	if c.answers++; c.answers < TryAnswers {
		return false
	}
	c.on, c.trying, c.since = false, false, now
	return true
}

// Lost handles a probe without an answer: the try ends, and reports whether there was one.
func (c *Carrying) Lost(now time.Time) bool {
	if !c.trying {
		return false
	}
	c.trying, c.next = false, now.Add(c.pause)
	c.pause = min(2*c.pause, max(TryPause, c.relapses))
	return true
}
