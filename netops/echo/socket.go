package echo

import (
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Default limits of a Responder.
const (
	DefaultRate  = 1000 // per second
	DefaultBurst = 200
)

// Config is the configuration of a Socket.
type Config struct {
	Local netip.AddrPort // an IPv4 address of this host; port zero: any free one
	// Responder answers requests; nil: requests are ignored.
	Responder *Responder
}

// Responder is the configuration of the answers to requests. Replies are as long as their requests. The zero value
// answers without content, within the default limits.
type Responder struct {
	Rate  int // replies per second; zero: DefaultRate
	Burst int // replies at once; zero: DefaultBurst
	Each  int // replies to one address, per second and as a burst; zero: only the total limit
	// Answer is called for each request that will be answered and returns the reply's content; nil: none. It runs on
	// the socket's goroutine and must not block.
	Answer func(from netip.AddrPort, request Message) Content
	// Accepts reports whether a request is answered; nil: all are. It is called as Answer is.
	Accepts func(from netip.AddrPort, request Message) bool
}

// Reasons for which a valid message is ignored.
const (
	ReasonNoResponder   Reason = "no responder"
	ReasonRateLimit     Reason = "rate limit"
	ReasonUnknownSender Reason = "request of a stranger"
	ReasonSession       Reason = "reply of no session"
	ReasonSource        Reason = "reply from another address"
	ReasonSequence      Reason = "reply to nothing asked, or once more"
	ReasonNotSent       Reason = "answer could not be sent"
)

// packetConn is a UDP socket. WriteTo does not block if its buffer is full.
type packetConn interface {
	ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error)
	WriteTo(b []byte, to netip.AddrPort, route Route) error
	Close() error
}

// Socket is one UDP socket that answers requests and serves any number of probers, with one goroutine that receives and
// one that sends at the due times.
type Socket struct {
	conn      packetConn
	begin     time.Time // origin of the times of requests
	responder *Responder
	limits    *limits
	done      chan struct{}
	wake      chan struct{} // of size one: the next due time may have changed
	running   sync.WaitGroup
	end       func() error // closes the connection, once

	mu      sync.Mutex // guards the following fields, and all probers
	probers map[uint64]*Prober
	sizers  map[uint64]*sizer
	ignored map[Reason]uint64
}

// newSocket starts to serve conn, which it owns.
func newSocket(conn packetConn, responder *Responder) *Socket {
	s := &Socket{
		conn:    conn,
		begin:   time.Now(),
		done:    make(chan struct{}),
		wake:    make(chan struct{}, 1),
		probers: make(map[uint64]*Prober),
		sizers:  make(map[uint64]*sizer),
		ignored: make(map[Reason]uint64),
	}
	if responder != nil {
		s.responder = responder
		s.limits = newLimits(*responder)
	}
	s.end = sync.OnceValue(func() error {
		close(s.done)
		return conn.Close()
	})
	s.running.Go(s.receive)
	s.running.Go(s.send)
	return s
}

// Ignored returns the number of ignored packets since Listen, by reason.
func (s *Socket) Ignored() map[Reason]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.ignored)
}

// Close closes the socket and its probers, and returns when no callback is running any more.
func (s *Socket) Close() error {
	err := s.end()
	s.running.Wait()
	return err
}

// newSession returns a random number that no prober or sizer of this socket has; s.mu is held.
func (s *Socket) newSession() uint64 {
	for {
		session := rand.Uint64() //nolint:gosec // ChaCha8 with a random seed
		if s.probers[session] == nil && s.sizers[session] == nil {
			return session
		}
	}
}

// first returns the prober that is due first, nil if there is none; s.mu is held.
func (s *Socket) first() *Prober {
	var first *Prober
	for _, p := range s.probers {
		if first == nil || p.due.Before(first.due) {
			first = p
		}
	}
	return first
}

// wakeUp makes the sending goroutine recompute the next due time.
func (s *Socket) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// send sends requests and gives up old ones when they are due, until the socket is closed.
func (s *Socket) send() {
	var buf []byte
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		due, ok := s.sendDue(&buf)
		if ok {
			timer.Reset(time.Until(due))
		} else {
			timer.Stop()
		}
		select {
		case <-timer.C:
		case <-s.wake:
		case <-s.done:
			return
		}
	}
}

// sendDue performs all actions that are due and returns the next due time, if there is one.
func (s *Socket) sendDue(buf *[]byte) (time.Time, bool) {
	for {
		s.mu.Lock()
		p, now := s.first(), time.Now()
		if p == nil {
			s.mu.Unlock()
			return time.Time{}, false
		}
		if p.due.After(now) {
			due := p.due
			s.mu.Unlock()
			return due, true
		}
		before := p.stats.Lost
		given, silent, request, send := p.step(now)
		target, route := p.target, p.route
		s.mu.Unlock()

		for i := range given {
			p.lost(before + i + 1)
		}
		if silent {
			p.cfg.OnSilence()
		}
		if send {
			s.sendRequest(p, target, route, request, buf)
		}
	}
}

// sendRequest sends one request.
func (s *Socket) sendRequest(p *Prober, target netip.AddrPort, route Route, request Message, buf *[]byte) {
	if p.cfg.Content != nil {
		request.Content = p.cfg.Content()
	}
	packet, err := request.AppendTo((*buf)[:0])
	*buf = packet
	if err == nil {
		err = s.conn.WriteTo(packet, target, route)
	}
	if err == nil || errors.Is(err, net.ErrClosed) {
		return
	}
	s.mu.Lock()
	counts := p.failed(request, err)
	lost := p.stats.Lost
	s.mu.Unlock()
	if counts {
		p.lost(lost)
	}
}

func (p *Prober) lost(consecutive int) {
	if p.cfg.OnLost != nil {
		p.cfg.OnLost(consecutive)
	}
}
