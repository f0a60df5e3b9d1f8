package nft

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

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
	top.connect("left", top.left, "10.1.0.1/24", leftIP+"/24")
	top.connect("right", top.right, "10.2.0.1/24", rightIP+"/24")
	top.router.Inside(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0) })
	return top
}

// connect puts a veth pair between the router, where it has the given name, and eth0 of a far end.
func (top topology) connect(name string, end namespace, routerIP, endIP string) {
	t := top.router.t
	t.Helper()
	top.router.Inside(func() error {
		return netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: name, Group: linkGroup(name)}, PeerName: "eth0",
			PeerNamespace: netlink.NsFd(end.FD()),
		})
	})
	up := func(n namespace, link, ip, gateway string) {
		h, err := netlink.NewHandleAt(netns.NsHandle(n.FD()))
		require.NoError(t, err)
		defer h.Close()
		l, err := h.LinkByName(link)
		require.NoError(t, err)
		addr, err := netlink.ParseAddr(ip)
		if err == nil {
			err = errors.Join(h.AddrAdd(l, addr), h.LinkSetUp(l))
		}
		if err == nil && gateway != "" {
			err = h.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Gw: net.ParseIP(gateway)})
		}
		require.NoError(t, err)
	}
	up(top.router, name, routerIP, "")
	up(end, "eth0", endIP, netip.MustParsePrefix(routerIP).Addr().String())
}

// linkGroup is the group of a router's link.
func linkGroup(link string) uint32 { return map[string]uint32{"left": 0x4c01, "right": 0x4c02}[link] }

// apply gives the router a table of one chain after another.
func (top topology) apply(chains ...Chain) {
	top.router.t.Helper()
	top.router.apply(top.conn, Table{Name: "packets", Chains: chains})
}

// listenUDP opens a UDP socket in a namespace; port 0 is any.
func (n namespace) listenUDP(address string, port uint16) *net.UDPConn {
	n.t.Helper()
	var c *net.UDPConn
	n.Inside(func() (err error) {
		c, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(address), Port: int(port)})
		return err
	})
	n.t.Cleanup(func() { _ = c.Close() })
	return c
}

// exchange sends a datagram from one socket to an address and, where it arrives, an answer back. It returns
// the source that the other end sees.
func exchange(t *testing.T, from *net.UDPConn, to string, at *net.UDPConn) netip.Addr {
	t.Helper()
	port := at.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	dst := netip.AddrPortFrom(netip.MustParseAddr(to), port)
	if _, err := from.WriteToUDPAddrPort([]byte("question"), dst); err != nil {
		t.Fatal(err)
	}
	seen, err := receive(at, answerWait)
	if err != nil {
		t.Fatalf("datagram for %s: %v", to, err)
	}
	if _, err := at.WriteToUDPAddrPort([]byte("answer"), seen); err != nil {
		t.Fatal(err)
	}
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
	if _, err := from.WriteTo(payload, at.LocalAddr()); err != nil {
		t.Fatal(err)
	}
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
	var listener net.Listener
	ctx, cancel := context.WithTimeout(t.Context(), answerWait)
	defer cancel()
	at.Inside(func() (err error) {
		listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort(address, "0"))
		return err
	})
	defer func() { _ = listener.Close() }()
	from.Inside(func() error {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp4", listener.Addr().String())
		if err != nil {
			return err
		}
		client = c.(*net.TCPConn)
		return nil
	})
	c, err := listener.Accept()
	if err != nil {
		t.Fatal(fmt.Errorf("accept: %w", err))
	}
	server = c.(*net.TCPConn)
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return client, server
}
