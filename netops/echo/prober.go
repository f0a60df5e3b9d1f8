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

// minInterval prevents floods by a zero interval or a missing unit.
const minInterval = 10 * time.Millisecond

// ProbeConfig is the configuration of a Prober. The callbacks run on the socket's goroutines: they must not block or
// close the socket; they may call the prober and add others. A callback may run before Probe returns, and one may still
// be running when Stop returns.
type ProbeConfig struct {
	Target   netip.AddrPort
	Route    Route
	Interval time.Duration // between requests; 10 ms at least
	// Calm is the time between requests while no request of the window is lost, and while there are no replies; zero:
	// Interval.
	Calm time.Duration
	// Train is the number of requests that are sent together while calm, to wake up a path once for many. Zero: one.
	Train int
	// Timeout is the time after which a request is given up; zero: DefaultTimeout. It is extended for long round trips:
	// see roundTrips.
	Timeout time.Duration
	// Eager is the timeout of the first request of a prober that has received no reply yet; it doubles with each
	// request, up to Timeout. Zero: Timeout.
	Eager time.Duration
	Size  int // of a request, bytes without IP and UDP headers; zero: MinSize
	// Window is the number of last requests for loss and median; zero: DefaultWindow. It is rounded up to a power of
	// two, and to the maximum number of outstanding requests.
	Window int
	Span   time.Duration // for which a request counts as loss; zero: as long as it is in the window
	// Silence is the time without replies after which a path counts as new when it answers again: earlier losses no
	// longer count. Zero: no limit.
	Silence time.Duration

	Content func() Content                         // of each request; nil: none
	OnReply func(reply Message, rtt time.Duration) // called for each reply, late ones too; nil: none
	// OnLost is called for each loss with the number of consecutive losses since the last reply. It is not called for
	// requests that were sent before an answered one. nil: none.
	OnLost func(consecutive int)
	// OnSilence is called once if there is no reply for Calm plus one and a half times Patience, or longer if round
	// trips are longer or vary, although additional requests were sent meanwhile. Single losses have no effect. nil:
	// none.
	OnSilence func()
	Patience  time.Duration // of OnSilence, for a path without delay
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

// Route is the path of packets out of the host. The zero value: the route of unmarked packets.
type Route struct {
	Link int    // index of the link; 0: that of the route
	Mark uint32 // mark for the route lookup; it requires CAP_NET_ADMIN
}

// ProbeStats are the statistics of a prober.
type ProbeStats struct {
	Sent     uint64 // requests since Probe, including those that could not be sent
	Received uint64 // replies since Probe
	// Loss is the share of the span's requests without a reply, 0 to 1, counted from the first reply on, and again from
	// the first one after a silence.
	Loss      float64
	Missing   int           // number of these requests
	LastLoss  time.Time     // when the last of them was sent; zero: none
	Lost      int           // consecutive requests without a reply since the last reply
	RTT       time.Duration // median of the window; zero: no reply in it
	LastReply time.Time     // zero: none from this target
	LastError error         // error of the last request if it could not be sent; nil after a reply
}

// Prober sends requests to one target periodically. Many probers share a Socket.
type Prober struct {
	socket *Socket
	cfg    ProbeConfig

	// The following fields are guarded by socket.mu.
	stopped bool
	due     time.Time // time of the next action
	next    time.Time // time of the next request
	train   int       // number of requests in the current train
	session uint64
	target  netip.AddrPort
	route   Route
	window  window
	trips   roundTrips
	silence silence
	stats   ProbeStats // except Loss and RTT, which come from the window
}

// Probe starts a prober of cfg.Target. The first request is sent immediately.
func (s *Socket) Probe(cfg ProbeConfig) (*Prober, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Prober{socket: s, cfg: cfg, route: cfg.Route}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.start(cfg.Target)
	s.wakeUp()
	return p, nil
}

// Socket returns the prober's socket. The prober ends with it.
func (p *Prober) Socket() *Socket { return p.socket }

// Session returns the number that the requests of the present target have.
func (p *Prober) Session() uint64 {
	p.socket.mu.Lock()
	defer p.socket.mu.Unlock()
	return p.session
}

// SetTarget changes the target and sends a request immediately. Window, losses and last reply are reset. For the same
// target it does nothing.
func (p *Prober) SetTarget(target netip.AddrPort) error {
	if !validTarget(target) {
		return fmt.Errorf("probe %v: want an IPv4 address and a port", target)
	}
	p.change(func() {
		if p.target != target {
			delete(p.socket.probers, p.session)
			p.start(target)
		}
	})
	return nil
}

// SwitchTarget changes the target and sends a request immediately, or after the timeout if the last one could not be
// sent: otherwise errors of OnLost's own request would occupy a core. Late replies of the previous target still count.
// Window, losses and last reply are kept. OnLost is not called for outstanding requests; otherwise each loss would
// cause another request.
func (p *Prober) SwitchTarget(target netip.AddrPort) error {
	if !validTarget(target) {
		return fmt.Errorf("probe %v: want an IPv4 address and a port", target)
	}
	p.change(func() {
		p.target = target
		p.window.release()
		p.sendNext()
		if p.stats.LastError != nil {
			p.next = p.next.Add(p.timeout())
			p.due = p.next
		}
	})
	return nil
}

// SetRoute changes the route of requests.
func (p *Prober) SetRoute(route Route) {
	p.change(func() { p.route = route })
}

// SetCalm changes the time between requests while calm. The current pause ends immediately.
func (p *Prober) SetCalm(calm time.Duration) {
	p.change(func() {
		if calm = max(calm, p.cfg.Interval); calm != p.cfg.Calm {
			p.cfg.Calm = calm
			p.sendNext()
		}
	})
}

// SendNow sends the next request immediately.
func (p *Prober) SendNow() {
	p.change(p.sendNext)
}

// change modifies a prober that has not been stopped, and wakes up the sender, because its next action may be due at
// another time.
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

// sendNext makes the next request due; socket.mu is held.
func (p *Prober) sendNext() {
	p.next = time.Now()
	p.due = p.next
}

// Stop ends the requests. The statistics are kept.
func (p *Prober) Stop() {
	s := p.socket
	s.mu.Lock()
	defer s.mu.Unlock()
	p.stopped = true
	delete(s.probers, p.session)
}

// Stats returns the current statistics.
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

// start starts a session with a target; socket.mu is held.
func (p *Prober) start(target netip.AddrPort) {
	p.target = target
	p.session = p.socket.newSession()
	p.socket.probers[p.session] = p
	p.window, p.trips = newWindow(p.cfg.Window), roundTrips{}
	p.stats = ProbeStats{Sent: p.stats.Sent, Received: p.stats.Received}
	p.await(time.Now())
	p.sendNext()
}

// step performs the actions that are due; socket.mu is held. It returns the number of requests that were given up,
// whether the target has become silent, and whether the returned request must be sent to the target.
func (p *Prober) step(now time.Time) (given int, silent bool, request Message, send bool) {
	silent = p.fallsSilent(now)
	timeout := p.timeout()
	given = p.window.expire(now.Add(-timeout))
	p.stats.Lost += given
	if given > 0 { // the calm period has ended: send as soon as the interval allows
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
		p.stats.LastError = nil
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

// timeout returns the current time after which a request is given up; socket.mu is held.
func (p *Prober) timeout() time.Duration {
	if eager := p.cfg.Eager << min(max(p.stats.Sent, 1)-1, 10); eager > 0 && p.stats.Received == 0 {
		return min(eager, p.cfg.Timeout)
	}
	return p.trips.timeout(p.cfg.Timeout)
}

// interval returns the current time between requests; socket.mu is held. Only a path that loses some requests is probed
// more often than while calm.
func (p *Prober) interval(now time.Time) time.Duration {
	if now.Sub(p.stats.LastReply) > p.cfg.Calm+2*p.cfg.Timeout || p.window.calm() {
		return p.cfg.Calm
	}
	return p.cfg.Interval
}

// nextTime returns the next time at which requests of an interval are sent. Times are the same for all probers of a
// socket, so that one wake-up serves many. A process that was stopped does not catch up.
func (s *Socket) nextTime(now time.Time, interval time.Duration) time.Time {
	return s.begin.Add(now.Sub(s.begin).Truncate(interval) + interval)
}

// failed records that a request of that session could not be sent, and reports whether the session is still active;
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

// received records a reply; socket.mu is held. ok is false if the reply matches no request, or is a duplicate.
func (p *Prober) received(reply Message, now time.Time) (rtt time.Duration, ok bool) {
	rtt, ok = p.window.receive(reply.Sequence, reply.Sent, now)
	if !ok {
		return 0, false
	}
	if p.stats.LastReply.IsZero() || p.cfg.Silence > 0 && now.Sub(p.stats.LastReply) >= p.cfg.Silence {
		p.window.begin(reply.Sequence, now)
	}
	p.trips.add(rtt)
	p.await(now)
	p.stats.Received++
	p.stats.Lost = 0
	p.stats.LastReply, p.stats.LastError = now, nil
	return rtt, true
}
