package kernel

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops"
)

// TestUnexpectedPacketsInTunnel: a compromised gateway sends packets by the tunnel with sources outside its cluster,
// and to destinations that are no pods or nodes of the other cluster.
func TestUnexpectedPacketsInTunnel(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, a, b side) {
		b.gateways[0].allowAll()
		t.Run("probes are for the own cluster", func(t *testing.T) { testProbes(t, a, b) })
		t.Run("WireGuard by itself", func(t *testing.T) { testAllowedIPs(t, a, b) })
		// From here on WireGuard accepts every source, so that the rules must drop these packets.
		a.gateways[0].allowAll()
		t.Run("errors about others", func(t *testing.T) { testErrorsAboutOthers(t, a, b) })
		t.Run("to the broadcast address", func(t *testing.T) { testBroadcast(t, a, b) })
		received := listenAll(t, a)
		for name, s := range strays(a, b) {
			t.Run(name, func(t *testing.T) { s.expectDropped(t, a, b, received) })
		}
	})
}

// testBroadcast sends an overlay packet to the broadcast address by a tunnel link that is not in its group. It is
// delivered without a route.
func testBroadcast(t *testing.T, a, b side) {
	g := a.gateways[0]
	g.IP("link set dev lqn-tunnel group 0")
	// A strict reverse path filter would drop these packets as well; here the rules must.
	g.Run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.lqn-tunnel.rp_filter=0")
	defer g.follow()
	f := g.frame(g.config.Internal, a.pod(1), b.seenPod(1), bad)
	outer := datagram(g.config.Nodes[1].Source, netip.MustParseAddr("255.255.255.255"), string(f.bytes()))
	binary.BigEndian.PutUint16(outer[22:], g.config.Overlay.Port)
	before := g.drops("uplink")
	// repeated, because a packet is lost while the tunnel is renewed.
	wait.Until(t, "a drop in chain uplink", answerWait, func() bool {
		b.gateways[0].inject(t, outer)
		return g.drops("uplink") > before
	})
}

// testProbes requests a gateway's health endpoint: its own cluster reaches the pod's address, the peer does not.
func testProbes(t *testing.T, a, b side) {
	g, pod := a.gateways[0], a.nodes[0].config.Peers[0].Gateways[0].Pod
	g.Inside(func() error {
		probes, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp4", netip.AddrPortFrom(pod, netops.HealthPort).String())
		if err == nil {
			t.Cleanup(func() { _ = probes.Close() })
		}
		return err
	})
	ctx, cancel := context.WithTimeout(t.Context(), answerWait)
	defer cancel()
	c, err := a.nodes[0].Dial(ctx, "tcp4", netip.AddrPortFrom(pod, netops.HealthPort))
	require.NoError(t, err)
	_ = c.Close()
	before := a.nodes[0].drops("to-pods")
	wait.Until(t, "a drop in chain to-pods", answerWait, func() bool {
		short, cancel := context.WithTimeout(t.Context(), silence)
		defer cancel()
		if c, err := b.nodes[1].pod.Dial(short, "tcp4", netip.AddrPortFrom(a.seen(pod), netops.HealthPort)); err == nil {
			t.Error("a pod of the peer is connected")
			_ = c.Close()
		}
		return a.nodes[0].drops("to-pods") > before
	})
}

// allowAll sets AllowedIPs to all addresses.
func (g *testGateway) allowAll() {
	g.allow(parsed.Prefixes("0.0.0.0/1", "128.0.0.0/1"))
}

// stray is a packet that B's gateway sends through the tunnel, but that A does not offer or expect.
type stray struct {
	source, target netip.Addr
	at             namespace // namespace that drops it
	chain          string    // that drops it; "": there is no route
}

// strays returns packets with a source that is not B's, or to a destination that A does not offer.
func strays(a, b side) map[string]stray {
	g := a.gateways[0]
	all := map[string]stray{}
	for name, source := range map[string]netip.Addr{
		"a stranger":                 netip.MustParseAddr("10.99.0.1"),
		"B's pods as A reaches them": b.seenPod(1),
		"a node of B":                b.node(1),
		"a node of A":                a.node(1),
		"an overlay of A":            a.internal(0),
		"A's gateway":                g.config.Internal,
		"A's end of the tunnel":      g.config.Tunnels[0].Address.Addr(),
		"B's end of the tunnel":      g.config.Tunnels[0].Peer, // may reach A's end, but no pods
		"the loopback address":       netip.MustParseAddr("127.0.0.1"),
		"no address":                 netip.IPv4Unspecified(),
	} {
		all["from "+name] = stray{source, a.pod(1), g.namespace, "from-tunnel"}
	}
	for name, target := range map[string]netip.Addr{
		"a node of A":                  a.node(1),
		"a control plane":              numbered(a.nodeNetwork, 10),
		"a Service of A":               netip.MustParseAddr(clusterIP),
		"the API server":               netip.MustParseAddr("10.96.0.1"),
		"an overlay of A":              a.internal(1),
		"A's gateway":                  g.config.Internal,
		"A's end of the tunnel":        g.config.Tunnels[0].Address.Addr(),
		"another peering":              netip.MustParseAddr("10.13.0.5"),
		"another host":                 outsideAddress,
		"the loopback address":         netip.MustParseAddr("127.0.0.1"),
		"broadcast":                    netip.MustParseAddr("255.255.255.255"),
		"a group":                      netip.MustParseAddr("224.0.0.1"),
		"a host that is not exposed":   numbered(externalCIDR, 0x8005),
		"A's pods as B reaches them":   a.seenPod(1),
		"the internal range's last":    numbered(internalCIDR, 0xffff),
		"the cloud's metadata service": netip.MustParseAddr("169.254.169.254"),
	} {
		all["to "+name] = stray{b.pod(1), target, g.namespace, "to-cluster"}
	}
	all["to the gateway's pod"] = stray{b.pod(1), a.nodes[0].config.Peers[0].Gateways[0].Pod, a.nodes[0].namespace, "to-pods"}
	all["to a node's end of the overlay"] = stray{b.pod(1), numbered(externalCIDR, 1+1), a.nodes[1].namespace, "to-node"}
	all["to a missing pod"] = stray{b.pod(1), numbered(a.pods[0], 0x7705), g.namespace, ""}
	all["to a missing node"] = stray{b.pod(1), numbered(externalCIDR, 0x77), g.namespace, ""}
	return all
}

// expectDropped sends the packet, followed by one that arrives; the first must not have arrived by then. Both are
// repeated until both have an effect, because a packet is lost while the tunnel is renewed.
func (s stray) expectDropped(t *testing.T, a, b side, received *capture) {
	before := 0
	if s.chain != "" {
		before = s.at.drops(s.chain)
	}
	received.forget()
	wait.Until(t, "a packet sent after it, and a drop in chain "+s.chain, answerWait, func() bool {
		b.gateways[0].inject(t, datagram(s.source, s.target, bad))
		b.gateways[0].inject(t, datagram(b.pod(1), a.pod(1), good))
		return received.has(good) && (s.chain == "" || s.at.drops(s.chain) > before)
	})
	if received.has(bad) {
		t.Errorf("from %s to %s: it arrived", s.source, s.target)
	}
}

// testAllowedIPs sends from addresses that WireGuard must drop before any rule processes them.
func testAllowedIPs(t *testing.T, a, b side) {
	g, received := a.gateways[0], listenAll(t, a)
	for name, s := range strays(a, b) {
		if !strings.HasPrefix(name, "from ") || s.source == g.config.Tunnels[0].Peer {
			continue
		}
		before := g.drops("from-tunnel")
		s.chain = ""
		s.expectDropped(t, a, b, received)
		if g.drops("from-tunnel") != before {
			t.Errorf("%s: came out of the tunnel", name)
		}
	}
}

// inject sends a packet into a gateway's tunnel, without its routes and rules.
func (g *testGateway) inject(t *testing.T, packet []byte) {
	t.Helper()
	g.emit(netops.Tunnel, nil, packet)
}

// capture has all UDP packets that pods, nodes and gateways of clusters receive.
type capture struct {
	mu       sync.Mutex
	received []string
}

// listenAll starts a capture of clusters.
func listenAll(t *testing.T, clusters ...side) *capture {
	const udpHeader = 8
	e := &capture{}
	var places []namespace
	for _, c := range clusters {
		places = append(places, c.gateways[0].namespace)
		for _, n := range c.nodes {
			places = append(places, n.namespace, n.pod)
		}
	}
	for _, ns := range places {
		conn := watch(t, ns)
		go func() {
			for buf := make([]byte, 2000); ; {
				n, _, err := conn.ReadFrom(buf)
				if err != nil || n < udpHeader {
					return // closed by the end of the test
				}
				e.mu.Lock()
				e.received = append(e.received, string(buf[udpHeader:n]))
				e.mu.Unlock()
			}
		}()
	}
	return e
}

// expectDrop sends a packet, with payload bad, that a chain drops, and then one that arrives, with payload good: the
// first one has not arrived by then.
func (e *capture) expectDrop(t *testing.T, at namespace, chain string, sendBad, sendGood func()) {
	t.Helper()
	e.forget()
	expectDrop(t, at, chain, sendBad)
	wait.Until(t, "a packet sent after it", answerWait, func() bool {
		sendGood() // a busy guest loses one now and then
		return e.await(good)
	})
	if e.has(bad) {
		t.Error("it arrived")
	}
}

func (e *capture) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.received = nil
}

// await waits up to a second for a packet with that payload.
func (e *capture) await(payload string) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 100 {
		if e.has(payload) {
			return true
		}
		<-tick.C
	}
	return false
}

// has reports whether a packet with that payload was captured.
func (e *capture) has(payload string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.received, payload)
}
