package websocket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/topology"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/kernel"
	"liqonet.io/liqonet/netops/tunnel"
	"liqonet.io/liqonet/netops/tunnel/wireguard"
)

const listenPort = 51840

// patience is the time that a test waits for packets. In a guest, a first handshake may take five seconds.
const patience = 2 * time.Minute

// eachImplementation runs a test with those that this kernel must offer: LIQONET_TEST_WIREGUARD, or userspace alone.
func eachImplementation(t *testing.T, test func(t *testing.T, client, server *gateway)) {
	names := strings.Fields(os.Getenv("LIQONET_TEST_WIREGUARD"))
	if len(names) == 0 {
		names = []string{wireguard.Userspace}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			client, server := newPair(t, name)
			test(t, client, server)
		})
	}
}

// TestSwitch switches a tunnel between UDP and a relay under traffic: no packet is lost, and the client's endpoint
// and session are kept.
func TestSwitch(t *testing.T) {
	const switches, packets = 20, 4000
	eachImplementation(t, func(t *testing.T, client, server *gateway) {
		relay(t, client, server)
		before := client.stats(t)
		ended := make(chan error, 2)
		for _, end := range []*gateway{client, server} {
			go func() { ended <- end.ping(packets, patience) }()
		}
		for i := range switches {
			client.carry(t, i%2 == 0)
			server.awaitClient(t, i%2 == 0)
			received := client.stats(t).RxBytes
			wait.Until(t, "traffic", patience, func() bool { return client.stats(t).RxBytes > received+100_000 })
		}
		for range 2 {
			require.NoError(t, <-ended)
		}
		if now := client.stats(t); now.Endpoint != before.Endpoint || !now.Session.Since.Equal(before.Session.Since) {
			t.Errorf("before %+v, now %+v", before, now)
		}
	})
}

// TestCarriedWithoutUDP: a carried tunnel needs no UDP between the gateways, also for a new session, which keeps the
// mark.
func TestCarriedWithoutUDP(t *testing.T) {
	eachImplementation(t, func(t *testing.T, client, server *gateway) {
		relay(t, client, server)
		endpoint := client.stats(t).Endpoint
		for _, end := range []*gateway{client, server} {
			end.Chain("blocked", "in", "filter hook prerouting priority -500", "iifname eth0 meta l4proto udp drop")
		}
		client.carry(t, true)
		require.NoError(t, client.ping(20, patience))
		client.Inside(func() error { return client.device.RenewAt(endpoint) })
		server.awaitClient(t, true)
		wait.Succeeds(t, patience, func() error { return client.ping(1, time.Second) })
		if now := client.stats(t); now.Endpoint != endpoint || now.Mark != netops.MarkCarried || now.Changed {
			t.Errorf("after a renewal: %+v", now)
		}
		if client.apply(t) {
			t.Error("after a renewal, the same configuration changed something")
		}
	})
}

// TestCarriedPathIncomplete: without the rule or the route, carried packets leave encrypted, as those of any tunnel,
// and the next pass restores the path.
func TestCarriedPathIncomplete(t *testing.T) {
	eachImplementation(t, func(t *testing.T, client, server *gateway) {
		relay(t, client, server)
		client.carry(t, true)
		for _, command := range []string{"rule del priority 51", "route flush table 7604"} {
			server.awaitClient(t, true)
			client.IP(command)
			server.awaitClient(t, false)
			require.NoError(t, client.ping(20, patience))
			client.follow(t)
		}
		server.awaitClient(t, true)
	})
}

// TestSegments writes datagrams together, which arrive one by one, and reads together what was sent together.
func TestSegments(t *testing.T) {
	const size, count, last = 1420, 70, 700 // more than one write of the kernel, less than a receive buffer
	ns := netns.New(t)
	peer := ns.ListenUDP(fmt.Sprintf("127.0.0.1:%d", listenPort))
	s := opened(t, ns, func() (*socket, error) { return newServerSocket(listenPort) })
	all := make([]byte, size*count+last)
	for i := range all {
		all[i] = byte(i / size)
	}
	require.NoError(t, s.write(all, size))
	buf := make([]byte, 1<<16)
	require.NoError(t, peer.SetReadDeadline(time.Now().Add(patience)))
	var from netip.AddrPort
	for rest := all; len(rest) > 0; {
		n, at, err := peer.ReadFromUDPAddrPort(buf)
		if err != nil || !bytes.Equal(buf[:n], rest[:min(size, len(rest))]) {
			t.Fatalf("received %d bytes, error %v, of %d", n, err, len(rest))
		}
		from, rest = at, rest[n:]
	}
	joined := all[:20*size+last]
	_, _, err := peer.WriteMsgUDPAddrPort(joined, segmentation(size), from)
	require.NoError(t, err)
	if n, got, err := s.read(buf); err != nil || got != size || !bytes.Equal(buf[:n], joined) {
		t.Errorf("read %d bytes of size %d, error %v", n, got, err)
	}
	_, err = peer.WriteToUDPAddrPort(all[:last], from)
	require.NoError(t, err)
	if n, got, err := s.read(buf); err != nil || n != last || got != last {
		t.Errorf("read %d bytes of size %d, error %v", n, got, err)
	}
}

// TestNoWireGuard: a socket outlasts WireGuard, and what cannot be sent is dropped.
func TestNoWireGuard(t *testing.T) {
	ns := netns.New(t)
	server := opened(t, ns, func() (*socket, error) { return newServerSocket(listenPort) })
	client := opened(t, ns, func() (*socket, error) { return newClientSocket(listenPort + 1) })
	for _, size := range []int{-1, 0, 1, 100, 1000, 1 << 16, 1 << 20} {
		for _, s := range []*socket{server, client} {
			require.NoError(t, s.write(make([]byte, 1000), size))
			require.NoError(t, s.write(make([]byte, 1<<17), size))
		}
	}
	ended := make(chan error)
	go func() {
		_, _, err := server.read(make([]byte, 1<<16))
		ended <- err
	}()
	require.NoError(t, server.Close())
	for _, err := range []error{<-ended, server.write([]byte{1}, 1)} {
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	}
}

// TestStrangersAtClientSocket: datagrams from outside do not become what the socket answers.
func TestStrangersAtClientSocket(t *testing.T) {
	ns, stranger := netns.New(t), netns.New(t)
	join(t, ns, stranger, "192.0.2.11", "192.0.2.1")
	s := opened(t, ns, func() (*socket, error) { return newClientSocket(listenPort) })
	for _, send := range []struct {
		from netns.Namespace
		to   string
	}{{stranger, "192.0.2.11"}, {ns, "192.0.2.11"}, {ns, "127.0.0.1"}} {
		conn, err := send.from.Dial(t.Context(), "udp4", netip.MustParseAddrPort(fmt.Sprintf("%s:%d", send.to, listenPort)))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = conn.Write([]byte(send.to))
		require.NoError(t, err)
	}
	b := make([]byte, 1<<16)
	if n, _, err := s.read(b); err != nil || string(b[:n]) != "127.0.0.1" {
		t.Errorf("read a datagram to %s, error %v", b[:n], err)
	}
}

// opened opens a socket in a namespace for the time of the test.
func opened(t *testing.T, ns netns.Namespace, open func() (*socket, error)) (s *socket) {
	t.Helper()
	ns.Inside(func() (err error) {
		s, err = open()
		return err
	})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// relay plays the transport between two gateways, with a delay: when a tunnel is switched, there are packets on the
// other path.
func relay(t *testing.T, client, server *gateway) {
	const delay = 10 * time.Millisecond
	near := opened(t, client.Namespace, func() (*socket, error) { return newClientSocket(listenPort) })
	far := opened(t, server.Namespace, func() (*socket, error) { return newServerSocket(listenPort) })
	var reads atomic.Int64
	t.Cleanup(func() { t.Logf("%d reads", reads.Load()) })
	copied := func(from, to *socket) {
		for b := make([]byte, 1<<16); ; {
			n, size, err := from.read(b)
			if err != nil {
				return // closed by the end of the test
			}
			reads.Add(1)
			datagrams := bytes.Clone(b[:n])
			time.AfterFunc(delay, func() { _ = to.write(datagrams, size) })
		}
	}
	go copied(near, far)
	go copied(far, near)
}

// gateway is one end of a tunnel, with the state of a gateway.
type gateway struct {
	netns.Namespace
	kernel *kernel.Kernel
	state  netops.GatewayConfig
	config wireguard.Config
	device *wireguard.Device
}

// newPair makes two gateways with a tunnel that works.
func newPair(t *testing.T, implementation string) (client, server *gateway) {
	pods := map[bool]string{true: "192.0.2.11", false: "192.0.2.1"}
	ends := map[bool]string{true: "169.254.18.2", false: "169.254.18.1"}
	psk, err := wgtypes.GenerateKey()
	require.NoError(t, err)
	made := map[bool]*gateway{}
	keys := map[bool]wgtypes.Key{}
	for isClient := range pods {
		keys[isClient], err = wgtypes.GeneratePrivateKey()
		require.NoError(t, err)
		made[isClient] = &gateway{Namespace: netns.New(t)}
	}
	join(t, made[true].Namespace, made[false].Namespace, pods[true], pods[false])
	for isClient, g := range made {
		far := netip.MustParseAddr(ends[!isClient])
		g.config = wireguard.Config{
			Config:     tunnel.Config{Implementation: implementation, Name: netops.Tunnel, MTU: 1420, AllowedIPs: []netip.Prefix{cidr.Single(far)}},
			PrivateKey: wireguard.NewSecret(keys[isClient]), PresharedKey: wireguard.NewSecret(psk), PublicKey: keys[!isClient].PublicKey(),
		}
		g.state = topology.GatewayOfEqualClusters()
		g.state.Pod, g.state.MTU, g.state.Carries = netip.MustParseAddr(pods[isClient]), 1420, isClient
		end := &g.state.Tunnels[0]
		end.Address, end.Peer = netip.PrefixFrom(netip.MustParseAddr(ends[isClient]), 30), far
		if isClient {
			end.ListenPort = 0
			g.config.Endpoints = []string{fmt.Sprintf("%s:%d", pods[false], listenPort)}
			g.config.KeepAlive = 25 * time.Second
		} else {
			g.config.ListenPort = listenPort
		}
	}
	made[false].open(t) // first: a handshake without an answer is repeated only after 5 s
	made[true].open(t)
	wait.Succeeds(t, patience, func() error { return made[true].ping(1, time.Second) })
	return made[true], made[false]
}

// join makes a link eth0 between two namespaces.
func join(t *testing.T, a, b netns.Namespace, atA, atB string) {
	a.Link("eth0", b, "eth0", 0)
	a.IP("addr add " + atA + "/24 dev eth0")
	b.IP("addr add " + atB + "/24 dev eth0")
	wait.Until(t, "link eth0 works", patience, func() bool {
		return strings.Contains(a.IP("link show dev eth0"), "state UP") && strings.Contains(b.IP("link show dev eth0"), "state UP")
	})
}

// open brings up tunnel, firewall and routes.
func (g *gateway) open(t *testing.T) {
	g.Run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=1") // as a host may have it, from which pods inherit
	var err error
	g.kernel, err = kernel.OpenAt(g.FD())
	require.NoError(t, err)
	t.Cleanup(func() { _ = g.kernel.Close() })
	g.follow(t) // the firewall is first, or it does not know the first handshake, which is repeated after 5 s
	g.Inside(func() (err error) {
		g.device, err = wireguard.Open(g.config, slog.New(slog.NewTextHandler(t.Output(), nil)), func() {})
		return err
	})
	t.Cleanup(func() { _ = g.device.Close(true) })
	g.follow(t)
}

// follow brings the kernel to the gateway's state.
func (g *gateway) follow(t *testing.T) {
	t.Helper()
	have, err := g.kernel.Observe()
	require.NoError(t, err)
	want := netops.GatewayState(g.state).Reachable(have)
	require.NoError(t, g.kernel.Apply(netops.Diff(have, want)))
	have, err = g.kernel.Observe()
	require.NoError(t, err)
	if rest := netops.Diff(have, want); !rest.Empty() {
		t.Fatalf("left to do:\n%s", rest)
	}
}

// carry sets or removes the mark.
func (g *gateway) carry(t *testing.T, carried bool) {
	t.Helper()
	g.config.Mark = 0
	if carried {
		g.config.Mark = netops.MarkCarried
	}
	if !g.apply(t) || g.stats(t).Mark != g.config.Mark {
		t.Errorf("mark %#x, want %#x", g.stats(t).Mark, g.config.Mark)
	}
}

func (g *gateway) apply(t *testing.T) (changed bool) {
	t.Helper()
	g.Inside(func() (err error) {
		changed, err = g.device.Apply(g.config)
		return err
	})
	return changed
}

// awaitClient waits until a server's WireGuard has received the client's last packet by the relay or by UDP.
func (g *gateway) awaitClient(t *testing.T, carried bool) {
	t.Helper()
	wait.Until(t, fmt.Sprintf("client carried: %t", carried), patience, func() bool {
		_ = g.ping(1, time.Second)
		return g.stats(t).Endpoint.Addr().IsLoopback() == carried
	})
}

func (g *gateway) stats(t *testing.T) tunnel.Stats {
	t.Helper()
	s, err := g.device.Stats()
	require.NoError(t, err)
	return s
}

// ping sends packets of almost full size to the other end, and is an error if any of them, or of the answers, does not
// arrive in time. ping(8) would not wait for late ones.
func (g *gateway) ping(count int, within time.Duration) error {
	c, err := g.Handle.ListenPacket(context.Background(), "ip4:icmp", g.state.Tunnels[0].Address.Addr().String())
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	id := int(pings.Add(1))
	go func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for i := range count {
			request := icmp.Message{Type: ipv4.ICMPTypeEcho, Body: &icmp.Echo{ID: id, Seq: i, Data: make([]byte, 1300)}}
			b, _ := request.Marshal(nil)
			_, _ = c.WriteTo(b, &net.IPAddr{IP: g.state.Tunnels[0].Peer.AsSlice()}) // what is not sent is missing
			<-tick.C
		}
	}()
	missing := map[int]bool{}
	for i := range count {
		missing[i] = true
	}
	for b := make([]byte, 1<<16); len(missing) > 0; {
		if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
			return err
		}
		n, _, err := c.ReadFrom(b)
		if err != nil {
			return fmt.Errorf("%d of %d packets are missing: %w", len(missing), count, err)
		}
		m, err := icmp.ParseMessage(unix.IPPROTO_ICMP, b[:n])
		if echo, is := m.Body.(*icmp.Echo); err == nil && is && m.Type == ipv4.ICMPTypeEchoReply && echo.ID == id {
			delete(missing, echo.Seq)
		}
	}
	return nil
}

// pings has the last ID of ping.
var pings atomic.Uint32
