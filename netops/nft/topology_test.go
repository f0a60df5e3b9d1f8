package nft

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
)

// topology is three namespaces in a row, with addresses of their own on each side and more on the far ends:
//
//	left 10.1.0.5/24 ── 10.1.0.1 "left" router "right" 10.2.0.1 ── 10.2.0.7/24 right
//
// Left and right have a default route to the router; tables are applied in the router.
type topology struct {
	left, router, right namespace
	conn                *Conn
}

const (
	leftIP  = "10.1.0.5"
	rightIP = "10.2.0.7"
	// answerWait is how long a packet may take that is expected, refusalWait one that is not.
	answerWait  = time.Minute
	refusalWait = 200 * time.Millisecond
)

func newTopology(t *testing.T) topology {
	t.Helper()
	top := topology{left: newNamespace(t), router: newNamespace(t), right: newNamespace(t)}
	top.conn = top.router.open()
	top.connect("left", top.left, "10.1.0.1", leftIP)
	top.connect("right", top.right, "10.2.0.1", rightIP)
	top.router.Run("sysctl", "-qw", "net.ipv4.ip_forward=1")
	return top
}

// connect puts a veth pair between the router, where it has the given name, and eth0 of a far end.
func (top topology) connect(name string, end namespace, routerIP, endIP string) {
	top.router.t.Helper()
	top.router.Link(name, end.Namespace, "eth0", 0)
	top.router.IP("addr add "+routerIP+"/24 dev "+name, fmt.Sprintf("link set %s group %d", name, linkGroup(name)))
	end.IP("addr add "+endIP+"/24 dev eth0", "route add default via "+routerIP)
}

// linkGroup is the group of a router's link.
func linkGroup(link string) uint32 { return map[string]uint32{"left": 0x4c01, "right": 0x4c02}[link] }

// apply gives the router a table of one chain after another.
func (top topology) apply(chains ...Chain) {
	top.router.t.Helper()
	top.router.apply(top.conn, Table{Name: "packets", Chains: chains})
}

// exchange sends a datagram from one socket to an address and, where it arrives, an answer back. It returns
// the source that the other end sees.
func exchange(t *testing.T, from *net.UDPConn, to string, at *net.UDPConn) netip.Addr {
	t.Helper()
	port := at.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	dst := netip.AddrPortFrom(netip.MustParseAddr(to), port)
	_, err := from.WriteToUDPAddrPort([]byte("question"), dst)
	require.NoError(t, err)
	seen, err := receive(at, answerWait)
	if err != nil {
		t.Fatalf("datagram for %s: %v", to, err)
	}
	_, err = at.WriteToUDPAddrPort([]byte("answer"), seen)
	require.NoError(t, err)
	back, err := receive(from, answerWait)
	if err != nil {
		t.Fatalf("answer of %s: %v", to, err)
	}
	if back != dst {
		t.Errorf("answer from %s, want %s", back, dst)
	}
	return seen.Addr()
}

// receive returns the source of the next datagram.
func receive(c *net.UDPConn, wait time.Duration) (netip.AddrPort, error) {
	if err := c.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return netip.AddrPort{}, err
	}
	_, source, err := c.ReadFromUDPAddrPort(make([]byte, 2048))
	return source, err
}

// arrives sends a datagram, whose first byte it chooses, and reports whether it gets to the other end, as it
// should or not: that decides how long it waits. One that comes too late is not taken for the next.
func arrives(t *testing.T, from, at *net.UDPConn, payload []byte, should bool) bool {
	t.Helper()
	payload = slices.Clone(payload)
	payload[0] = byte(rand.Uint32())
	_, err := from.WriteTo(payload, at.LocalAddr())
	require.NoError(t, err)
	wait := refusalWait
	if should {
		wait = answerWait
	}
	require.NoError(t, at.SetReadDeadline(time.Now().Add(wait)))
	for buf := make([]byte, 2048); ; {
		n, err := at.Read(buf)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return false
		case err != nil:
			t.Fatal(err)
		case slices.Equal(buf[:n], payload):
			return true
		}
	}
}

// dialTCP opens a connection from one namespace to a listener in another and returns both ends.
func dialTCP(t *testing.T, from namespace, at namespace, address string) (client, server *net.TCPConn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), answerWait)
	defer cancel()
	listener := at.For(t).Listen(net.JoinHostPort(address, "0"))
	c, err := from.Dial(ctx, "tcp4", netip.MustParseAddrPort(listener.Addr().String()))
	require.NoError(t, err)
	client = c.(*net.TCPConn)
	c, err = listener.Accept()
	require.NoError(t, err)
	server = c.(*net.TCPConn)
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return client, server
}

// namespace is a network namespace of the test's own.
type namespace struct {
	netns.Namespace
	t *testing.T
}

func newNamespace(t *testing.T) namespace {
	t.Helper()
	return namespace{netns.New(t), t}
}

// in is the namespace as a subtest uses it.
func (n namespace) in(t *testing.T) namespace { return namespace{n.For(t), t} }

// nft executes commands of nft(8) within the namespace.
func (n namespace) nft(commands string) string {
	n.t.Helper()
	return n.Feed(commands, "nft", "-f", "-")
}

// list returns a table as nft(8) prints it.
func (n namespace) list(table string) string {
	n.t.Helper()
	return n.Feed("", "nft", "-y", "list", "table", "ip", table)
}

func (n namespace) open() *Conn {
	n.t.Helper()
	c, err := Open(n.FD())
	require.NoError(n.t, err)
	n.t.Cleanup(func() { _ = c.Close() })
	return c
}

// newConn returns a namespace and a connection to its tables.
func newConn(t *testing.T) (namespace, *Conn) {
	t.Helper()
	n := newNamespace(t)
	return n, n.open()
}

// observe reads a table, apply makes it as wanted and sees that it is.
func (n namespace) observe(c *Conn, table string) Table {
	n.t.Helper()
	have, err := c.Observe(IP, table)
	require.NoError(n.t, err)
	return have
}

func (n namespace) apply(c *Conn, want Table) Plan {
	n.t.Helper()
	plan := Diff(n.observe(c, want.Name), want)
	if err := c.Apply(plan); err != nil {
		n.t.Fatalf("%v\n%s", err, plan)
	}
	if again := Diff(n.observe(c, want.Name), want); !again.Empty() {
		n.t.Fatalf("after the plan\n%sthere is one more:\n%s", plan, again)
	}
	return plan
}

// plain takes counter values, and differences in white space that have no meaning, from nft text.
func plain(text string) string {
	text = regexp.MustCompile(`counter packets \d+ bytes \d+`).ReplaceAllString(text, "counter")
	text = regexp.MustCompile(`\s+`).ReplaceAllString(text, " ")
	return strings.NewReplacer(" }", "\n}", "; ", ";\n").Replace(text)
}
