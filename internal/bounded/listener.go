// Package bounded keeps a server from being held open: of its connections there are at most so many.
package bounded

import (
	"net"
	"slices"
	"sync"
)

// Listener returns a listener of which at most so many connections are open. For one more the oldest is closed: whoever
// opens many and holds them keeps nobody out, which a listener that accepts no more would do for him.
func Listener(l net.Listener, most int) net.Listener { return &listener{Listener: l, most: most} }

type listener struct {
	net.Listener
	most int

	mu   sync.Mutex
	open []*conn // the oldest first
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, of: l}
	l.mu.Lock()
	l.open = append(l.open, c)
	var oldest *conn
	if len(l.open) > l.most {
		oldest = l.open[0]
	}
	l.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close() // its other end may be gone already
	}
	return c, nil
}

// conn is a connection that is counted.
type conn struct {
	net.Conn
	of *listener
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.of.mu.Lock()
	c.of.open = slices.DeleteFunc(c.of.open, func(other *conn) bool { return other == c })
	c.of.mu.Unlock()
	return c.Conn.Close()
}
