//go:build linux

package websocket

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// pauseAfterError limits the processor time of errors that repeat at once.
const pauseAfterError = time.Second / 10

// connsMost is the number of open connections of one tunnel: one that ends and its successor, and those whose end the
// server has not noticed yet.
const connsMost = 4

// link connects a socket with connections of one tunnel. What arrives by any of them goes to WireGuard, what WireGuard
// sends goes to the latest. A server has a link for each connection, so that WireGuard replies to the one by which the
// last authenticated packet came. Two pods can have one key for a moment, and an ingress can use a proof itself.
type link struct {
	log    *slog.Logger
	socket datagrams

	mu     sync.Mutex
	conns  []*conn // the latest is last
	closed bool
}

// datagrams is the side of WireGuard, as socket.
type datagrams interface {
	read(b []byte) (n, size int, err error)
	write(b []byte, size int) error
	local() netip.AddrPort
	Close() error
}

// newLink starts to read from the socket, which it owns.
func newLink(s datagrams, log *slog.Logger) *link {
	l := &link{log: log, socket: s}
	go l.read()
	return l
}

// read passes the packets of WireGuard to a connection; without one they are lost, as on a broken path.
func (l *link) read() {
	b := make([]byte, 64<<10)
	for {
		n, size, err := l.socket.read(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			l.log.Warn("read packets for WebSocket", "error", err)
			<-time.After(pauseAfterError)
			continue
		}
		if c := l.current(); c != nil && n > 0 {
			c.queue.add(b[:n], size, time.Now())
		}
	}
}

// current returns the connection that gets the packets of WireGuard; nil: there is none.
func (l *link) current() *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.conns) == 0 {
		return nil
	}
	return l.conns[len(l.conns)-1]
}

// remote returns the other end of the current connection, and its congestion control; the zero value: there is none.
func (l *link) remote() (remote netip.AddrPort, congestion string) {
	if c := l.current(); c != nil {
		remote, _ = netip.ParseAddrPort(c.raw.RemoteAddr().String())
		congestion = c.congestion
	}
	return remote, congestion
}

// serve runs a connection until it ends.
func (l *link) serve(c *conn, buffered []byte) error {
	c.deliver = func(b []byte, size int) {
		if err := l.socket.write(b, size); err != nil && !errors.Is(err, net.ErrClosed) {
			l.log.Debug("packets of WebSocket are lost", "error", err)
		}
	}
	below := c.raw
	if c.joined != nil {
		below = c.joined.Conn
	}
	c.congestion = selectCongestionControl(below)
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		c.close(net.ErrClosed)
		return net.ErrClosed
	}
	l.conns = append(l.conns, c)
	if len(l.conns) > connsMost {
		l.conns[0].close(errors.New("replaced by later connections"))
	}
	l.mu.Unlock()
	err := c.run(l.log, buffered)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = slices.DeleteFunc(l.conns, func(one *conn) bool { return one == c })
	return err
}

// close ends socket and connections.
func (l *link) close() error {
	err := l.socket.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, c := range l.conns {
		c.close(net.ErrClosed)
	}
	return err
}
