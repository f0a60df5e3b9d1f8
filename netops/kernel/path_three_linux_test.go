package kernel

import (
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/netops"
)

// TestThreeClusters joins A with B and A with C, all with the same CIDRs.
func TestThreeClusters(t *testing.T) {
	t.Parallel()
	eachOverlay(t, func(t *testing.T, kind netops.LinkKind) {
		a, b, c := threeSides(t)
		join(kind, b, a)
		join(kind, a, c)
		for _, peer := range []side{b, c} {
			t.Run("a and "+peer.name, func(t *testing.T) {
				expectAll(t, a, peer)
				expectAll(t, peer, a)
			})
		}
		t.Run("no transit", func(t *testing.T) { testNoTransit(t, a, b, c) })
		t.Run("another peering's gateway", func(t *testing.T) { testOtherGateway(t, a, b, c) })
		t.Run("another peering's errors", func(t *testing.T) { testOtherErrors(t, a, b, c) })
	})
}

// threeSides creates three clusters with the same ranges, without peerings. A reaches B and C by remapped ranges.
func threeSides(t *testing.T) (a, b, c side) {
	w, same := newWorld(t), parsed.Prefixes("10.244.0.0/16")
	a = w.side("a", 1, same, parsed.Prefixes("10.11.0.0/16"))
	b = w.side("b", 2, same, parsed.Prefixes("10.12.0.0/16"))
	c = w.side("c", 3, same, parsed.Prefixes("10.13.0.0/16"))
	c.seenExternal = netip.MustParsePrefix("10.73.0.0/16")
	for _, s := range []side{a, b, c} {
		s.build()
	}
	return a, b, c
}

// testOtherGateway: A's gateway for C sends to a node with the address of a pod of B, with its own VNI and with that of
// B's peering, and with the address of the other gateway.
func testOtherGateway(t *testing.T, a, b, c side) {
	n, toB, toC := a.nodes[1], a.gateways[0].config, a.gateways[1]
	n.Run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0") // the rules must drop them without it
	received := listenAll(t, a)
	for name, f := range map[string]struct {
		vni    uint32
		source netip.Addr
		chain  string
	}{
		"as another peer's pod":        {toC.config.VNI, b.seenPod(1), "from-c"},
		"as another gateway":           {toC.config.VNI, toB.Internal, "from-c"},
		"in another peering's network": {toB.VNI, b.seenPod(1), "outer"},
		"with an unknown VNI":          {toB.VNI + 100, c.seenPod(1), "outer"},
	} {
		t.Run(name, func(t *testing.T) {
			forged := toC.frame(a.internal(1), f.source, a.pod(1), bad)
			sound := toC.frame(a.internal(1), c.seenPod(1), a.pod(1), good)
			forged.vni = f.vni
			send := func(f frame) func() { return func() { toOverlay(t, toC.namespace, a.node(1), f.bytes()) } }
			received.expectDrop(t, n.namespace, f.chain, send(forged), send(sound))
		})
	}
}

// testOtherErrors: A's gateway for B sends a pod and a node errors about a packet to a pod of C, or of A itself, and
// redirects for packets to B.
func testOtherErrors(t *testing.T, a, b, c side) {
	n, g := a.nodes[1], a.gateways[0]
	const unreachable, redirect = 3, 5
	for who, to := range map[string]struct {
		namespace
		address netip.Addr
	}{"pod": {n.pod, a.pod(1)}, "node": {n.namespace, a.internal(1)}} {
		for what, e := range map[string]struct {
			kind  byte
			about netip.Addr
			drops int
		}{
			"about its peer":           {unreachable, b.seenPod(1), 0},
			"about another peer":       {unreachable, c.seenPod(1), 1},
			"about this cluster's own": {unreachable, a.pod(0), 1},
			"redirect":                 {redirect, b.seenPod(1), 1},
		} {
			t.Run(who+", "+what, func(t *testing.T) {
				conn := datagrams(t, to.namespace, at(e.about), unix.IP_PMTUDISC_DONT)
				from := netip.MustParseAddrPort(conn.LocalAddr().String())
				// The node then has a connection to which the error is related.
				if _, err := conn.Write([]byte("?")); err != nil {
					t.Fatal(err)
				}
				about := packet{protocol: unix.IPPROTO_UDP, source: to.address, target: e.about}.with(udp(from.Port(), servicePort, nil))
				forged := icmpAbout(e.kind, b.seenPod(1), to.address, about)
				received, before := watchProtocol(t, to.namespace, "icmp"), n.drops("quoted-b")
				send := func(inner []byte) {
					toOverlay(t, g.namespace, a.node(1), g.around(a.internal(1), unix.ETH_P_IP, inner))
				}
				send(forged)
				const request, length = 8, 8
				send(packet{protocol: unix.IPPROTO_ICMP, source: b.seenPod(1), target: to.address}.with([]byte{request, 0, 0xf7, 0xff, 0, 0, 0, 0}))
				want := []byte{e.kind, request}[min(e.drops, 1):]
				for _, kind := range want {
					got := make([]byte, 2000)
					if size, _, err := received.ReadFrom(got); err != nil || size < length || got[0] != kind {
						t.Fatalf("%d bytes, ICMP type %d (%v), want type %d", size, got[0], err, kind)
					}
				}
				if drops := n.drops("quoted-b") - before; drops != e.drops {
					t.Errorf("%d packets dropped by quoted-b, want %d", drops, e.drops)
				}
			})
		}
	}
}

// testNoTransit: a compromised B sends to destinations that A does not offer. A's gateway drops the packets.
func testNoTransit(t *testing.T, a, b, c side) {
	for name, target := range map[string]netip.Addr{
		"pod of C":           c.seenPod(0),
		"node of C":          c.seenNode(0),
		"node of A":          a.node(0),
		"internal of A":      a.internal(0),
		"gateway of A":       a.gateways[0].config.Internal,
		"gateway of A for C": a.gateways[1].config.Internal,
		"service of A":       netip.MustParseAddr(clusterIP),
	} {
		t.Run(name, func(t *testing.T) {
			seen := netip.MustParseAddr("10.99.0.1")
			restore := b.addPeerRange(netops.Mapping{Real: cidr.Single(target), Seen: cidr.Single(seen)})
			defer restore()
			dropped(t, b.nodes[1].pod, at(seen), func() int { return a.gateways[0].drops("to-cluster") })
		})
	}
}

// addPeerRange adds a range of the peer, on the nodes and in the first gateway.
func (c *testCluster) addPeerRange(m netops.Mapping) (restore func()) {
	g := c.gateways[0]
	config, allowed := g.config, g.tunnels[0].config.AllowedIPs
	apply := func(c netops.GatewayConfig, allowed []netip.Prefix) {
		g.allow(allowed)
		g.config = c
		g.follow()
	}
	extended := config
	extended.Peer = append(slices.Clone(config.Peer), m)
	apply(extended, append(slices.Clone(allowed), m.Real))
	for _, n := range c.nodes {
		peer := &n.config.Peers[0]
		peer.CIDRs = append(slices.Clone(peer.CIDRs), m.Seen)
		n.follow()
	}
	return func() {
		apply(config, allowed)
		for _, n := range c.nodes {
			peer := &n.config.Peers[0]
			peer.CIDRs = slices.DeleteFunc(peer.CIDRs, func(p netip.Prefix) bool { return p == m.Seen })
			n.follow()
		}
	}
}
