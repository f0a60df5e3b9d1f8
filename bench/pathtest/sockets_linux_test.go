package pathtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/netns"
)

// acceptIn listens for TCP connections in a namespace until the test ends.
func acceptIn(t *testing.T, ns netns.Namespace, port int) (listener net.Listener) {
	t.Helper()
	ns.For(t).Inside(func() (err error) {
		listener, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp4", fmt.Sprintf(":%d", port))
		return err
	})
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// dialIn opens a connection from a namespace, such as one of network "udp4".
func dialIn(ns netns.Namespace, network string, to netip.AddrPort) (conn net.Conn) {
	ns.Inside(func() (err error) {
		conn, err = net.DialTimeout(network, to.String(), joining)
		return err
	})
	return conn
}

// every calls a function at each interval until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}

// answer sends each datagram back, changed by a function, until the socket is closed.
func answer(conn net.PacketConn, change func([]byte) []byte) {
	for b := make([]byte, 100); ; {
		n, from, err := conn.ReadFrom(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil { // otherwise an ICMP error
			_, _ = conn.WriteTo(change(b[:n]), from)
		}
	}
}
