package echo

import (
	"net/netip"
	"sync"
)

// Sockets are open sockets, by name. The zero value has none. Its methods may be called from any goroutine.
type Sockets struct {
	mu   sync.Mutex
	open map[string]openSocket
}

// openSocket is a socket and the address at which it was opened.
type openSocket struct {
	*Socket
	at netip.AddrPort
}

// Listen returns the socket of a name, which it opens at an address if there is none yet. A socket at another address
// is closed: it receives no packets any more.
func (s *Sockets) Listen(name string, at netip.AddrPort, r *Responder) (*Socket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.open[name]; ok {
		if old.at == at {
			return old.Socket, nil
		}
		s.drop(name)
	}
	socket, err := Listen(Config{Local: at, Responder: r})
	if err != nil {
		return nil, err
	}
	if s.open == nil {
		s.open = map[string]openSocket{}
	}
	s.open[name] = openSocket{socket, at}
	return socket, nil
}

// Drop closes the socket of a name, if there is one.
func (s *Sockets) Drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(name)
}

// drop is Drop; s.mu is held.
func (s *Sockets) drop(name string) {
	if socket, ok := s.open[name]; ok {
		_ = socket.Close() // a closed UDP socket loses no data
		delete(s.open, name)
	}
}

// All returns the open sockets.
func (s *Sockets) All() map[string]*Socket {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]*Socket, len(s.open))
	for name, socket := range s.open {
		all[name] = socket.Socket
	}
	return all
}

// Close closes all sockets.
func (s *Sockets) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.open {
		s.drop(name)
	}
}

// Aim starts a prober, or updates route, calm interval and target of a prober that already uses this socket.
func Aim(p **Prober, socket *Socket, c ProbeConfig) (err error) {
	if *p != nil && (*p).Socket() == socket {
		(*p).SetRoute(c.Route)
		(*p).SetCalm(c.Calm)
		return (*p).SetTarget(c.Target)
	}
	*p, err = socket.Probe(c)
	return err
}
