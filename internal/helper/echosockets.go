//go:build linux

package helper

import (
	"maps"
	"net/netip"
	"sync"

	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/echo"
)

// echoSockets are a helper's open echo sockets, by name. The zero value has none.
type echoSockets struct {
	mu   sync.Mutex
	open map[string]*echo.Socket
	at   map[string]netip.Addr // address of each open socket
}

// listen returns the socket of a name, which it opens at an address if there is none yet. A socket at another address
// is closed: it receives no packets any more.
func (s *echoSockets) listen(name string, a netip.Addr, r *echo.Responder) (*echo.Socket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.open[name]; old != nil {
		if s.at[name] == a {
			return old, nil
		}
		s.end(name, old)
	}
	socket, err := echo.Listen(echo.Config{Local: netip.AddrPortFrom(a, netops.EchoPort), Responder: r})
	if err != nil {
		return nil, err
	}
	if s.open == nil {
		s.open, s.at = map[string]*echo.Socket{}, map[string]netip.Addr{}
	}
	s.open[name], s.at[name] = socket, a
	return socket, nil
}

// drop closes the socket of a name, if there is one.
func (s *echoSockets) drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if socket := s.open[name]; socket != nil {
		s.end(name, socket)
	}
}

// end is drop with s.mu held.
func (s *echoSockets) end(name string, socket *echo.Socket) {
	_ = socket.Close() // as below
	delete(s.open, name)
}

// all returns the open sockets.
func (s *echoSockets) all() map[string]*echo.Socket {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.open)
}

func (s *echoSockets) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, socket := range s.open {
		_ = socket.Close() // a closed UDP socket loses no data
	}
	s.open = nil
}

// aimProber starts a prober, or updates the way and target of a prober that already uses this socket.
func aimProber(p **echo.Prober, socket *echo.Socket, c echo.ProbeConfig) (err error) {
	if *p != nil && (*p).Socket() == socket {
		(*p).SetRoute(c.Route)
		return (*p).SetTarget(c.Target)
	}
	*p, err = socket.Probe(c)
	return err
}
