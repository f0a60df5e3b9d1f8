// Package middlebox has what stands between clusters and forwards TCP connections: a proxy, a load balancer, an ingress
// controller. A test starts them in network namespaces of the lab; they are goroutines of the test's process.
package middlebox

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"liqonet.io/liqonet/lab/netns"
)

const (
	dialWithin   = 5 * time.Second
	headerWithin = 10 * time.Second // of a request
)

// listen opens a TCP socket in a namespace.
func listen(ns *netns.Namespace, at netip.AddrPort) (l net.Listener, err error) {
	err = ns.Do(func() error {
		var config net.ListenConfig
		l, err = config.Listen(context.Background(), "tcp4", at.String())
		return err
	})
	return l, err
}

// connections are the connections that a middlebox forwards.
type connections struct {
	ns    *netns.Namespace
	total atomic.Int64 // opened so far
	bytes atomic.Int64 // forwarded in both directions

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
	all    sync.WaitGroup
}

// Opened is the number of connections that were opened.
func (c *connections) Opened() int { return int(c.total.Load()) }

// Bytes is the number of bytes that were forwarded, in both directions.
func (c *connections) Bytes() int64 { return c.bytes.Load() }

// dial opens a connection in the namespace.
func (c *connections) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	return c.ns.Dial(ctx, to)
}

// add keeps connections until remove; false: the middlebox is closed.
func (c *connections) add(some ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	if c.open == nil {
		c.open = map[net.Conn]bool{}
	}
	for _, one := range some {
		c.open[one] = true
	}
	c.all.Add(1)
	return true
}

// remove forgets connections of one add. They are closed.
func (c *connections) remove(some ...net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range some {
		delete(c.open, one)
	}
	c.all.Done()
}

// splice forwards both directions until each has ended. begun are bytes of the client that were read already.
func (c *connections) splice(client, server net.Conn, begun io.Reader) {
	if !c.add(client, server) {
		_, _ = client.Close(), server.Close()
		return
	}
	c.total.Add(1)
	var both sync.WaitGroup
	forward := func(to net.Conn, from io.Reader) {
		// What ends one direction, the other end learns by the half that closes.
		_, _ = io.Copy(counter{to, &c.bytes}, from)
		if half, ok := to.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}
	both.Go(func() { forward(server, io.MultiReader(begun, client)) })
	both.Go(func() { forward(client, server) })
	both.Wait()
	_, _ = client.Close(), server.Close()
	c.remove(client, server)
}

// Cut ends all connections. New ones are accepted.
func (c *connections) Cut() {
	c.mu.Lock()
	open := slices.Collect(maps.Keys(c.open))
	c.mu.Unlock()
	for _, one := range open {
		_ = one.Close()
	}
}

// close ends all connections, and waits for them.
func (c *connections) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.Cut()
	c.all.Wait()
}

// counter counts what is written.
type counter struct {
	io.Writer
	bytes *atomic.Int64
}

func (c counter) Write(b []byte) (int, error) {
	c.bytes.Add(int64(len(b))) // before the other end has them
	return c.Writer.Write(b)
}

// Balancer is a load balancer that has TCP alone.
type Balancer struct {
	connections
	listener net.Listener
	to       netip.AddrPort
}

// StartBalancer forwards connections to an address.
func StartBalancer(ns *netns.Namespace, at, to netip.AddrPort) (*Balancer, error) {
	l, err := listen(ns, at)
	if err != nil {
		return nil, err
	}
	b := &Balancer{connections: connections{ns: ns}, listener: l, to: to}
	go b.accept()
	return b, nil
}

func (b *Balancer) accept() {
	for {
		client, err := b.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		go func() {
			server, err := b.dial(context.Background(), b.to)
			if err != nil {
				_ = client.Close()
				return
			}
			b.splice(client, server, http.NoBody)
		}()
	}
}

// Close ends the load balancer and its connections.
func (b *Balancer) Close() error {
	err := b.listener.Close()
	b.close()
	return err
}
