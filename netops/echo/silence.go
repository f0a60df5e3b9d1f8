package echo

import "time"

// quickAsks is how many requests beside the usual ones a target leaves unanswered before it counts as silent: of a
// prober that has one usual request meanwhile, a fifth of whose requests and answers are lost, that is some ten times
// an hour. If the asking process itself stood still, it asks up to that many times more: answers may have arrived that
// nobody has read.
const quickAsks = 6

// silence is what a prober does when answers stay away. The zero value waits for nothing.
type silence struct {
	due  time.Time // of the next quick request, or of the end of patience; zero: OnSilence was called
	asks int       // sent so far
}

// listen begins to wait for the next answer; socket.mu is held. It is late by half the patience before somebody asks.
func (p *Prober) listen(now time.Time) {
	if p.cfg.OnSilence != nil {
		p.silence = silence{due: now.Add(p.cfg.Calm + p.trips.timeout(p.cfg.Patience)/2)}
	}
}

// fallsSilent asks quickly when the answer is late, and reports whether patience has ended; socket.mu is held.
func (p *Prober) fallsSilent(now time.Time) bool {
	s := &p.silence
	if s.due.IsZero() || now.Before(s.due) {
		return false
	}
	pause := p.trips.timeout(p.cfg.Patience) / quickAsks
	stalled := now.Sub(s.due) > 2*pause
	if s.asks >= quickAsks && !stalled || s.asks >= 2*quickAsks {
		s.due = time.Time{}
		return true
	}
	s.asks++
	s.due, p.next = now.Add(pause), now
	return false
}
