package echo

import (
	"errors"
	"net"
	"net/netip"
	"time"
)

// errorPause limits the CPU time of a socket whose reads fail immediately.
const errorPause = 100 * time.Millisecond

// receive reads packets until the socket is closed.
func (s *Socket) receive() {
	in, out := make([]byte, MaxSize+1), []byte(nil)
	for {
		n, from, err := s.conn.ReadFromUDPAddrPort(in)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			select {
			case <-s.done:
				return
			case <-time.After(errorPause):
			}
			continue
		}
		m, err := Parse(in[:n])
		if err != nil {
			why, _ := errors.AsType[Reason](err)
			s.ignore(why)
			continue
		}
		if m.Kind == Request {
			out = s.answer(from, m, out)
		} else {
			s.deliver(from, m)
		}
	}
}

func (s *Socket) ignore(why Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ignored[why]++
}

// answer replies to a request. The reply is written into buf, which is returned for the next one.
func (s *Socket) answer(from netip.AddrPort, request Message, buf []byte) []byte {
	switch {
	case s.responder == nil:
		s.ignore(ReasonNoResponder)
		return buf
	case s.responder.Accepts != nil && !s.responder.Accepts(from, request):
		s.ignore(ReasonUnknownSender)
		return buf
	case !s.limits.allow(from.Addr()):
		s.ignore(ReasonRateLimit)
		return buf
	}
	reply := request
	reply.Kind, reply.Content = Reply, Content{}
	if s.responder.Answer != nil {
		reply.Content = s.responder.Answer(from, request)
	}
	buf, err := reply.AppendTo(buf[:0])
	if err == nil {
		err = s.conn.WriteTo(buf, from, Route{})
	}
	if err != nil {
		s.ignore(ReasonNotSent)
	}
	return buf
}

// deliver passes a reply to its prober.
func (s *Socket) deliver(from netip.AddrPort, reply Message) {
	now := time.Now()
	p, rtt, why := s.match(from, reply, now)
	if why != "" {
		s.ignore(why)
		return
	}
	if p != nil && p.cfg.OnReply != nil {
		p.cfg.OnReply(reply, rtt)
	}
}

// match returns the prober of a reply, or nil for a sizer, to which it has delivered the reply.
func (s *Socket) match(from netip.AddrPort, reply Message, now time.Time) (*Prober, time.Duration, Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if z := s.sizers[reply.Session]; z != nil {
		return nil, 0, z.receive(from, reply)
	}
	p, known := s.probers[reply.Session]
	if !known {
		return nil, 0, ReasonSession
	}
	if !p.window.sentTo(from, reply.Sequence) {
		return nil, 0, ReasonSource
	}
	rtt, ok := p.received(reply, now)
	if !ok {
		return nil, 0, ReasonSequence
	}
	return p, rtt, ""
}
