package liveness

import (
	"net"
	"slices"
	"sync"
)

// boundedListener limits the open connections of a server. A connection above the limit closes the oldest one: a client
// that holds many connections does not lock out others, as it would if the listener accepted no more.
type boundedListener struct {
	net.Listener
	limit int

	mu   sync.Mutex
	open []*boundedConn // the oldest first
}

// Accept implements net.Listener.
func (l *boundedListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &boundedConn{Conn: accepted, of: l}
	l.mu.Lock()
	l.open = append(l.open, c)
	var oldest *boundedConn
	if len(l.open) > l.limit {
		oldest = l.open[0]
	}
	l.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close() // its other end may be gone already
	}
	return c, nil
}

// boundedConn is a connection that counts until it is closed.
type boundedConn struct {
	net.Conn
	of *boundedListener
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	c.of.mu.Lock()
	c.of.open = slices.DeleteFunc(c.of.open, func(other *boundedConn) bool { return other == c })
	c.of.mu.Unlock()
	return c.Conn.Close()
}
