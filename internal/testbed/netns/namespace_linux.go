package netns

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
)

// Namespace is a network namespace that lives as long as a test. An error ends the test.
type Namespace struct {
	Handle
	t testing.TB
}

// New makes a namespace whose only link is the loopback device, which is up.
func New(t testing.TB) Namespace {
	t.Helper()
	made, err := Open()
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, made.Close())
	})
	ns := Namespace{made, t}
	ns.IP("link set lo up")
	return ns
}

// For returns the namespace for another test, such as a subtest: errors end that one.
func (ns Namespace) For(t testing.TB) Namespace {
	ns.t = t
	return ns
}

// Run executes a command in the namespace and returns what it prints.
func (ns Namespace) Run(name string, args ...string) string {
	ns.t.Helper()
	return ns.Feed("", name, args...)
}

// Feed executes a command that reads some input.
func (ns Namespace) Feed(input, name string, args ...string) string {
	ns.t.Helper()
	out, err := ns.Handle.Run(ns.t.Context(), input, name, args...)
	require.NoError(ns.t, err)
	return out
}

// IP executes ip(8) with arguments divided by spaces, for each of several lines in turn.
func (ns Namespace) IP(lines ...string) string {
	ns.t.Helper()
	if len(lines) == 1 {
		return ns.Run("ip", strings.Fields(lines[0])...)
	}
	return ns.Feed(strings.Join(lines, "\n"), "ip", "-batch", "-")
}

// NFT executes lines of nft(8) in one transaction.
func (ns Namespace) NFT(lines ...string) {
	ns.t.Helper()
	ns.Feed(strings.Join(lines, "\n")+"\n", "nft", "-f", "-")
}

// Chain adds a chain to a table of family ip, which it makes if needed. The hook is such as "nat hook prerouting
// priority -100".
func (ns Namespace) Chain(table, chain, hook string, rules ...string) {
	ns.t.Helper()
	ns.NFT("table ip "+table+" {", "chain "+chain+" { type "+hook, strings.Join(rules, "\n"), "}", "}")
}

// Inside calls a function on a thread that is in the namespace.
func (ns Namespace) Inside(do func() error) {
	ns.t.Helper()
	require.NoError(ns.t, ns.Do(do))
}

// ListenUDP opens a UDP socket in the namespace, at an address with a port, for the time of the test; port 0 is any.
func (ns Namespace) ListenUDP(address string) *net.UDPConn {
	ns.t.Helper()
	return ns.ListenPacket("udp4", address).(*net.UDPConn)
}

// ListenPacket opens a socket for packets in the namespace for the time of the test.
func (ns Namespace) ListenPacket(network, address string) net.PacketConn {
	ns.t.Helper()
	conn, err := ns.Handle.ListenPacket(context.Background(), network, address)
	require.NoError(ns.t, err)
	ns.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Listen opens a TCP listener in the namespace for the time of the test.
func (ns Namespace) Listen(address string) net.Listener {
	ns.t.Helper()
	listener, err := ns.Handle.Listen(context.Background(), address)
	require.NoError(ns.t, err)
	ns.t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// ServeSources answers the first byte of each connection to an address with the address that it comes from.
func (ns Namespace) ServeSources(address string) {
	ns.t.Helper()
	ns.ServeTCP(address, func(c net.Conn) {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			_, _ = io.WriteString(c, netip.MustParseAddrPort(c.RemoteAddr().String()).Addr().String())
		}
	})
}

// Source asks ServeSources for the address that connections from the namespace come from.
func (ns Namespace) Source(to netip.AddrPort) (string, error) {
	const answering = 20 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), answering)
	defer cancel()
	conn, err := ns.Dial(ctx, "tcp4", to)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	errDeadline := conn.SetDeadline(time.Now().Add(answering))
	_, errSend := conn.Write([]byte("?"))
	text, err := io.ReadAll(conn)
	return string(text), errors.Join(errDeadline, errSend, err)
}

// ServeTCP calls a function for each connection to an address in the namespace, until the test ends, and closes the
// connection when it returns. Port 0 is any.
func (ns Namespace) ServeTCP(address string, handle func(net.Conn)) (listening net.Addr) {
	ns.t.Helper()
	listener := ns.Listen(address)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				handle(c)
			}()
		}
	}()
	return listener.Addr()
}
