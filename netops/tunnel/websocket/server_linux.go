//go:build linux

package websocket

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// requestWithin is the time for TLS and the request, requestMost the size of its header.
	requestWithin = 5 * time.Second
	requestMost   = 4 << 10
	// waitingMost is the number of connections that have not proved anything yet. The oldest is closed for one more: a
	// peer needs a round trip or two, who only waits longer.
	waitingMost = 128
)

// notFound is the answer to all requests without a valid proof. The client corrects its clock by the date.
const notFound = "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\nDate: %s\r\n\r\n"

// ServerConfig is the configuration of a server's gateway.
type ServerConfig struct {
	Listen netip.AddrPort
	Seed   Key  // of its certificate
	Plain  bool // an ingress has ended TLS
}

// ServerTunnel is a tunnel that a server serves.
type ServerTunnel struct {
	Key        Key
	ListenPort uint16 // UDP port of WireGuard
}

// Server is the server's end of the transport of all tunnels of a gateway.
type Server struct {
	log      *slog.Logger
	listener net.Listener
	secure   *tls.Config // nil: plain
	proofs   proofs
	socket   func(listenPort uint16) (datagrams, error) // to WireGuard

	mu      sync.Mutex
	tunnels map[TunnelID]*servedTunnel
	waiting []net.Conn // have not proved anything; the oldest is first
}

type servedTunnel struct {
	ServerTunnel
	connections []*connection // the latest is last
}

// connection is one of a tunnel.
type connection struct {
	*link
	session uint64 // of echoes that the client sends by UDP; zero: none
}

// Listen opens the server's end. It serves no tunnel yet.
func Listen(c ServerConfig, log *slog.Logger) (*Server, error) {
	config := net.ListenConfig{Control: forTunnels, KeepAlive: -1}
	listener, err := config.Listen(context.Background(), "tcp4", c.Listen.String())
	if err != nil {
		return nil, fmt.Errorf("listen for WebSocket: %w", err)
	}
	s := &Server{log: log, listener: listener, tunnels: map[TunnelID]*servedTunnel{}}
	s.socket = func(listenPort uint16) (datagrams, error) { return newServerSocket(listenPort) }
	s.proofs = proofs{begin: time.Now(), keys: s.key}
	if !c.Plain {
		if s.secure, err = serverTLS(c.Seed); err != nil {
			return nil, errors.Join(err, listener.Close())
		}
	}
	go s.accept()
	return s, nil
}

// Serve sets the tunnels that the server serves. Connections of unchanged ones go on.
func (s *Server) Serve(want map[TunnelID]ServerTunnel) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for id, t := range s.tunnels {
		if w, stays := want[id]; !stays || w != t.ServerTunnel {
			for _, c := range t.connections {
				errs = append(errs, c.close())
			}
			delete(s.tunnels, id)
		}
	}
	for id, w := range want {
		if s.tunnels[id] == nil {
			s.tunnels[id] = &servedTunnel{ServerTunnel: w}
		}
	}
	return errors.Join(errs...)
}

// Close ends all connections.
func (s *Server) Close() error {
	err := errors.Join(s.listener.Close(), s.Serve(nil))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.waiting {
		_ = c.Close()
	}
	return err
}

// Remote returns the other end of the TCP connection of a tunnel whose WireGuard sends to endpoint, and its congestion
// control; the zero value: it is none.
func (s *Server) Remote(id TunnelID, endpoint netip.AddrPort) (remote netip.AddrPort, congestion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tunnels[id]; t != nil {
		for _, c := range t.connections {
			if c.socket.local() == endpoint {
				return c.remote()
			}
		}
	}
	return netip.AddrPort{}, ""
}

// Allows reports whether a client has announced echoes of a session by UDP.
func (s *Server) Allows(session uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range maps.Values(s.tunnels) {
		if slices.ContainsFunc(t.connections, func(c *connection) bool { return session != 0 && c.session == session }) {
			return true
		}
	}
	return false
}

func (s *Server) key(id TunnelID) (Key, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tunnels[id]
	if t == nil {
		return Key{}, false
	}
	return t.Key, true
}

// accept accepts connections until the server is closed.
func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no file descriptor is free, for example
			s.log.Warn("accept a WebSocket connection", "error", err)
			<-time.After(pauseAfterError)
			continue
		}
		s.mu.Lock()
		if s.waiting = append(s.waiting, c); len(s.waiting) > waitingMost {
			_ = s.waiting[0].Close()
			s.waiting = s.waiting[1:]
		}
		s.mu.Unlock()
		go s.serve(c)
	}
}

// admitted removes a connection from those that wait, and reports whether it was still among them.
func (s *Server) admitted(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, one := range s.waiting {
		if one == c {
			s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// serve serves one connection.
func (s *Server) serve(raw net.Conn) {
	_ = raw.SetDeadline(time.Now().Add(requestWithin))
	c, j := raw, (*joined)(nil)
	if s.secure != nil {
		j = &joined{Conn: raw}
		c = tls.Server(j, s.secure)
	}
	r := bufio.NewReaderSize(io.LimitReader(c, requestMost), requestMost)
	id, answer, ok := s.upgrade(r)
	if ok {
		_, err := io.WriteString(c, answer)
		ok = err == nil
	} else {
		_, _ = fmt.Fprintf(c, notFound, time.Now().UTC().Format(http.TimeFormat))
	}
	if !s.admitted(raw) || !ok {
		_ = c.Close()
		return
	}
	_ = raw.SetDeadline(time.Time{})
	s.log.Info("WebSocket connection", "client", raw.RemoteAddr(), "peerGateway", id.Client)
	buffered, _ := r.Peek(r.Buffered())
	s.log.Info("WebSocket connection has ended", "client", raw.RemoteAddr(), "reason", s.carry(id, newConn(c, j, false), buffered))
}

// carry runs a connection of a tunnel until it ends, and returns the reason.
func (s *Server) carry(id TunnelID, one *conn, buffered []byte) error {
	own := &connection{}
	one.allow = func(session uint64) {
		s.mu.Lock()
		defer s.mu.Unlock()
		own.session = session
	}
	t, err := s.connect(id, own)
	if err != nil {
		one.close(err)
		return err
	}
	err = own.serve(one, buffered)
	s.mu.Lock()
	defer s.mu.Unlock()
	t.connections = slices.DeleteFunc(t.connections, func(c *connection) bool { return c == own })
	_ = own.close()
	return err
}

// connect adds a connection to a tunnel, and opens its socket.
func (s *Server) connect(id TunnelID, own *connection) (*servedTunnel, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tunnels[id]
	if t == nil {
		return nil, net.ErrClosed
	}
	socket, err := s.socket(t.ListenPort)
	if err != nil {
		return nil, err
	}
	own.link = newLink(socket, s.log)
	if t.connections = append(t.connections, own); len(t.connections) > connsMost {
		_ = t.connections[0].close()
		t.connections = t.connections[1:]
	}
	return t, nil
}

// upgrade reads a request, and returns its tunnel and the answer to it; ok is false for all that is not the valid
// request of a peer's gateway.
func (s *Server) upgrade(r *bufio.Reader) (id TunnelID, answer string, ok bool) {
	request, err := http.ReadRequest(r)
	if err != nil {
		return id, "", false
	}
	id, ok = s.proofs.check(request.Header.Get("Authorization"), time.Now())
	key := request.Header.Get("Sec-WebSocket-Key")
	if !ok || key == "" || request.Method != http.MethodGet || !strings.EqualFold(request.Header.Get("Upgrade"), "websocket") {
		return id, "", false
	}
	return id, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: " + accepting(key) + "\r\n\r\n", true
}
