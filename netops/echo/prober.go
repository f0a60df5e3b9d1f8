package echo

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"
)

// Defaults of a ProbeConfig.
const (
	DefaultTimeout = time.Second
	DefaultWindow  = 64
)

// minInterval keeps a mistaken zero or a missing unit from flooding a path.
const minInterval = 10 * time.Millisecond

// ProbeConfig says what a Prober asks, whom, and how often. The callbacks run on the socket's own goroutines:
// they must not wait, nor close the socket; they may call the prober and add others. One may run before
// Probe returns, and one may still be running when Stop returns.
type ProbeConfig struct {
	Target   netip.AddrPort
	Way      Way
	Interval time.Duration // between requests; 10 ms at least
	// Calm is the time between requests while none of the window is lost, and while nobody answers; zero: Interval.
	Calm time.Duration
	// Train is how many requests are sent at once while it is calm: one awakening of a path serves many. Zero: one.
	Train int
	// Timeout is after how long a request is given up; zero: DefaultTimeout. Where round trips take long it is longer:
	// see roundTrips.
	Timeout time.Duration
	Size    int // of a request, bytes without IP and UDP headers; zero: MinSize
	// Window is the number of last requests from which loss and median are taken; zero: DefaultWindow. It is
	// rounded up to a power of two, and to what may be outstanding.
	Window int
	Span   time.Duration // for which a request counts as loss; zero: as long as it is in the window
	// Silence is how long a path may be silent before it counts as a new one when it answers again: what was lost on it
	// before is no loss. Zero: as long as it likes.
	Silence time.Duration

	Content func() Content                         // of each request; nil: nothing
	OnReply func(reply Message, rtt time.Duration) // each answer, late ones too; nil: nothing
	// OnLost is called for each loss with the number of losses since the last answer, which counts from one. It is not
	// called for what was lost before a request that has been answered. nil: nothing.
	OnLost func(consecutive int)
	// OnSilence is called once when no answer comes for Calm and one and a half times Patience, or longer where round
	// trips take longer or vary, though some more requests were sent meanwhile. It does not look at single losses. nil:
	// nothing.
	OnSilence func()
	Patience  time.Duration // with a quiet path, of OnSilence
}

func (c ProbeConfig) withDefaults() (ProbeConfig, error) {
	c.Timeout, c.Calm = cmp.Or(c.Timeout, DefaultTimeout), cmp.Or(c.Calm, c.Interval)
	c.Size, c.Window = cmp.Or(c.Size, MinSize), cmp.Or(c.Window, DefaultWindow)
	switch {
	case !validTarget(c.Target):
		return c, fmt.Errorf("probe %v: want an IPv4 address and a port", c.Target)
	case c.Interval < minInterval:
		return c, fmt.Errorf("probe %v: interval %v: want %v at least", c.Target, c.Interval, minInterval)
	case c.Calm < c.Interval:
		return c, fmt.Errorf("probe %v: %v between requests while calm: want the interval %v at least", c.Target, c.Calm, c.Interval)
	case c.Timeout < 0 || c.Window < 0:
		return c, fmt.Errorf("probe %v: timeout %v, window %d: want positive values", c.Target, c.Timeout, c.Window)
	case c.Size < MinSize || c.Size > MaxSize:
		return c, fmt.Errorf("probe %v: size %d: want %d to %d", c.Target, c.Size, MinSize, MaxSize)
	}
	c.Window = max(c.Window, int(longestTimeout(c.Timeout)/c.Interval)+2)
	return c, nil
}

func validTarget(t netip.AddrPort) bool { return t.Addr().Is4() && t.Port() != 0 }

// Way is how packets leave the host. The zero value: as the routes of unmarked packets say.
type Way struct {
	Link int    // index of the link; 0: that of the route
	Mark uint32 // by which a route is looked up; it needs CAP_NET_ADMIN
}

// ProbeStats is what a prober has seen.
type ProbeStats struct {
	Sent     uint64  // requests since Probe, those that could not be sent included
	Received uint64  // answers since Probe
	Loss     float64 // share of the span's requests without an answer, 0 to 1; counted from the first answer on,
	// and from the first one after a silence
	Missing   int           // how many these are
	LastLoss  time.Time     // when the last of them was sent; zero: there is none
	Lost      int           // requests without an answer since the last answer
	RTT       time.Duration // median of the window; zero: no answer in it
	LastReply time.Time     // zero: none from this target
	LastError error         // why the last request could not be sent; nil once an answer came
}

// Prober asks one target again and again. Many share a Socket.
type Prober struct {
	socket *Socket
	cfg    ProbeConfig

	// What follows is guarded by socket.mu.
	stopped bool
	due     time.Time // when it has something to do
	next    time.Time // of the next request
	train   int       // requests of the present train
	session uint64
	target  netip.AddrPort
	way     Way
	window  window
	trips   roundTrips
	silence silence
	stats   ProbeStats // but Loss and RTT, which come from the window
}

// Probe begins to ask cfg.Target, at once.
func (s *Socket) Probe(cfg ProbeConfig) (*Prober, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Prober{socket: s, cfg: cfg, way: cfg.Way}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.aim(cfg.Target)
	s.wakeUp()
	return p, nil
}

// Socket is the one that asks. A prober ends with it.
func (p *Prober) Socket() *Socket { return p.socket }

// SetTarget asks another target from now on, at once. Window, losses and last answer begin anew; the same
// target changes nothing.
func (p *Prober) SetTarget(target netip.AddrPort) error {
	if !validTarget(target) {
		return fmt.Errorf("probe %v: want an IPv4 address and a port", target)
	}
	p.change(func() {
		if p.target != target {
			delete(p.socket.probers, p.session)
			p.aim(target)
		}
	})
	return nil
}

// AskNext asks a target from now on, at once. Answers of the one before still count: a slow one is not lost. Window,
// losses and last answer go on. What is outstanding is not told when it is lost: else each loss would call for one more
// request.
func (p *Prober) AskNext(target netip.AddrPort) error {
	if !validTarget(target) {
		return fmt.Errorf("probe %v: want an IPv4 address and a port", target)
	}
	p.change(func() {
		p.target = target
		p.window.release()
		p.askNow()
	})
	return nil
}

// SetWay sends requests another way from now on.
func (p *Prober) SetWay(way Way) {
	p.change(func() { p.way = way })
}

// SetCalm changes the time between requests while it is calm. The present pause ends at once.
func (p *Prober) SetCalm(calm time.Duration) {
	p.change(func() {
		if calm = max(calm, p.cfg.Interval); calm != p.cfg.Calm {
			p.cfg.Calm = calm
			p.askNow()
		}
	})
}

// Hurry sends the next request at once.
func (p *Prober) Hurry() {
	p.change(p.askNow)
}

// change does something to a prober that has not been stopped, which may be due at another time then.
func (p *Prober) change(how func()) {
	s := p.socket
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.stopped {
		return
	}
	how()
	s.wakeUp()
}

// askNow makes the next request due; socket.mu is held.
func (p *Prober) askNow() {
	p.next = time.Now()
	p.due = p.next
}

// Stop ends the requests. The statistics stay.
func (p *Prober) Stop() {
	s := p.socket
	s.mu.Lock()
	defer s.mu.Unlock()
	p.stopped = true
	delete(s.probers, p.session)
}

// Stats returns what has been seen so far.
func (p *Prober) Stats() ProbeStats {
	p.socket.mu.Lock()
	defer p.socket.mu.Unlock()
	stats := p.stats
	stats.RTT = p.window.median()
	var since time.Time
	if p.cfg.Span > 0 {
		since = time.Now().Add(-p.cfg.Span)
	}
	missing, known, last := p.window.loss(since)
	if stats.Missing, stats.LastLoss = missing, last; known > 0 {
		stats.Loss = float64(missing) / float64(known)
	}
	return stats
}

// aim begins a session with a target; socket.mu is held.
func (p *Prober) aim(target netip.AddrPort) {
	p.target = target
	p.session = p.socket.newSession()
	p.socket.probers[p.session] = p
	p.window, p.trips = newWindow(p.cfg.Window), roundTrips{}
	p.stats = ProbeStats{Sent: p.stats.Sent, Received: p.stats.Received}
	p.listen(time.Now())
	p.askNow()
}

// step does what is due; socket.mu is held. It returns the number of requests given up, whether the target has fallen
// silent, and whether the request that it returns is to be sent to the target.
func (p *Prober) step(now time.Time) (given int, silent bool, request Message, send bool) {
	silent = p.fallsSilent(now)
	timeout := p.trips.timeout(p.cfg.Timeout)
	given = p.window.expire(now.Add(-timeout))
	p.stats.Lost += given
	if given > 0 { // it was calm until now: ask again as soon as an interval allows
		if soon := p.socket.nextTime(now, p.interval(now)); soon.Before(p.next) {
			p.next = soon
		}
	}
	if send = !now.Before(p.next); send {
		request = Message{
			Kind:     Request,
			Session:  p.session,
			Sequence: p.window.send(p.target, now),
			Sent:     now.UnixNano(),
			Size:     p.cfg.Size,
		}
		p.stats.Sent++
		p.next = p.socket.nextTime(now, p.interval(now))
		if p.train++; p.train < p.cfg.Train && p.interval(now) == p.cfg.Calm {
			p.next = now
		} else {
			p.train = 0
		}
	}
	p.due = p.next
	if sent, ok := p.window.oldest(); ok && sent.Add(timeout).Before(p.due) {
		p.due = sent.Add(timeout)
	}
	if due := p.silence.due; !due.IsZero() && due.Before(p.due) {
		p.due = due
	}
	return given, silent, request, send
}

// interval is the time between requests as things are: more often than while it is calm, only a path is asked that
// loses some; socket.mu is held.
func (p *Prober) interval(now time.Time) time.Duration {
	if now.Sub(p.stats.LastReply) > p.cfg.Calm+2*p.cfg.Timeout || p.window.calm() {
		return p.cfg.Calm
	}
	return p.cfg.Interval
}

// nextTime is the next of the times at which requests of an interval are sent. They are the same for all probers
// of a socket, so that one awakening serves many; a stopped process does not catch up.
func (s *Socket) nextTime(now time.Time, interval time.Duration) time.Time {
	return s.begin.Add(now.Sub(s.begin).Truncate(interval) + interval)
}

// failed notes that a request of that session could not be sent, and reports whether the session still runs;
// socket.mu is held.
func (p *Prober) failed(request Message, err error) bool {
	if request.Session != p.session || p.stopped {
		return false
	}
	p.window.fail(request.Sequence)
	p.stats.Lost++
	p.stats.LastError = err
	return true
}

// received notes an answer; socket.mu is held. It is not ok if it answers nothing that was asked, or not for
// the first time.
func (p *Prober) received(reply Message, now time.Time) (rtt time.Duration, ok bool) {
	rtt, ok = p.window.receive(reply.Sequence, reply.Sent, now)
	if !ok {
		return 0, false
	}
	if p.stats.LastReply.IsZero() || p.cfg.Silence > 0 && now.Sub(p.stats.LastReply) >= p.cfg.Silence {
		p.window.begin(reply.Sequence, now)
	}
	p.trips.add(rtt)
	p.listen(now)
	p.stats.Received++
	p.stats.Lost = 0
	p.stats.LastReply, p.stats.LastError = now, nil
	return rtt, true
}
