package echo

import "time"

// quickProbes is the number of additional requests without a reply before a target counts as silent. With a prober that
// sends one regular request meanwhile, and a loss of a fifth of requests and replies, a false silence occurs about ten
// times an hour. If the own process was stopped, up to that many more requests are sent, because replies may have
// arrived that were not read yet.
const quickProbes = 6

// silence is the state of a prober that waits for a late reply. The zero value does not wait.
type silence struct {
	due    time.Time // of the next quick request, or of the silence; zero: OnSilence was called
	probes int       // quick requests so far
}

// await starts to wait for the next reply; socket.mu is held. Quick requests start when the reply is late by half the
// patience.
func (p *Prober) await(now time.Time) {
	if p.cfg.OnSilence != nil {
		p.silence = silence{due: now.Add(p.cfg.Calm + p.trips.timeout(p.cfg.Patience)/2)}
	}
}

// fallsSilent sends quick requests if the reply is late, and reports whether the target is silent; socket.mu is held.
func (p *Prober) fallsSilent(now time.Time) bool {
	s := &p.silence
	if s.due.IsZero() || now.Before(s.due) {
		return false
	}
	pause := p.trips.timeout(p.cfg.Patience) / quickProbes
	stalled := now.Sub(s.due) > 2*pause
	if s.probes >= quickProbes && !stalled || s.probes >= 2*quickProbes {
		s.due = time.Time{}
		return true
	}
	s.probes++
	s.due, p.next = now.Add(pause), now
	return false
}
