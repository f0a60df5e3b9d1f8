package netops

import (
	"context"
	"net/netip"
	"slices"
	"testing"
)

// TestThreeClusters joins A with B and A with C, all with the same CIDRs.
func TestThreeClusters(t *testing.T) {
	for _, kind := range overlays() {
		t.Run(string(kind), func(t *testing.T) {
			w := newWorld(t)
			same := prefixes("10.244.0.0/16")
			a := w.side("a", 1, same, prefixes("10.11.0.0/16"))
			b := w.side("b", 2, same, prefixes("10.12.0.0/16"))
			c := w.side("c", 3, same, prefixes("10.13.0.0/16"))
			c.seenExternal = netip.MustParsePrefix("10.73.0.0/16")
			for _, s := range []side{a, b, c} {
				s.build()
			}
			join(kind, b, a)
			join(kind, a, c)
			for _, peer := range []side{b, c} {
				t.Run("a and "+peer.name, func(t *testing.T) {
					expectAll(t, a, peer)
					expectAll(t, peer, a)
				})
			}
			t.Run("no transit", func(t *testing.T) { testNoTransit(t, a, b, c) })
			t.Run("another peering's gateway", func(t *testing.T) { testOtherGateway(t, kind, a, b, c) })
		})
	}
}

// testOtherGateway has A's gateway for C send to a node as a pod of B: in its own network, in that of B's peering, and as
// the other gateway itself.
func testOtherGateway(t *testing.T, kind LinkKind, a, b, c side) {
	n, toB, toC := a.nodes[1], a.gateways[0].config, a.gateways[1]
	n.run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0") // the rules have to refuse what it would refuse as well
	heard := listenAll(t, a)
	for name, f := range map[string]struct {
		vni    uint32
		source netip.Addr
		chain  string
	}{
		"as another peer's pod":          {toC.config.VNI, b.seenPod(1), "from-c"},
		"as another gateway":             {toC.config.VNI, toB.Internal, "from-c"},
		"in another peering's network":   {toB.VNI, b.seenPod(1), "outer"},
		"in a network that there is not": {toB.VNI + 100, c.seenPod(1), "outer"},
	} {
		t.Run(name, func(t *testing.T) {
			heard.forget()
			before := n.drops(f.chain)
			forged := frame{kind: kind, vni: f.vni, end: a.internal(1), source: f.source, target: a.pod(1), payload: bad}
			toOverlay(t, toC.namespace, a.node(1), forged.bytes())
			eventually(t, "a drop in chain "+f.chain, func() bool { return n.drops(f.chain) > before })
			forged.vni, forged.source, forged.payload = toC.config.VNI, c.seenPod(1), good
			toOverlay(t, toC.namespace, a.node(1), forged.bytes())
			eventually(t, "the packet sent after it", func() bool { return heard.has(good) })
			if heard.has(bad) {
				t.Error("it arrived")
			}
		})
	}
}

// testNoTransit has B, who does as it likes, send to what A has never offered: A's gateway drops it.
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
			restore := b.claim(Mapping{Real: host(target), Seen: host(seen)})
			defer restore()
			dropped(t, b.nodes[1].pod, at(seen), func() int { return a.gateways[0].drops("to-cluster") })
		})
	}
}

// claim leads one more range to the peer, on the nodes and in the first gateway.
func (c *testCluster) claim(m Mapping) (restore func()) {
	g := c.gateways[0]
	config, device := g.config, g.tunnel
	apply := func() {
		g.inside(func() error {
			_, err := g.device.Apply(context.Background(), g.tunnel)
			return err
		})
		g.follow()
	}
	g.config.Peer = append(slices.Clone(config.Peer), m)
	g.tunnel.Peer.AllowedIPs = append(slices.Clone(device.Peer.AllowedIPs), m.Real)
	apply()
	for _, n := range c.nodes {
		peer := &n.config.Peers[0]
		peer.CIDRs = append(slices.Clone(peer.CIDRs), m.Seen)
		n.follow()
	}
	return func() {
		g.config, g.tunnel = config, device
		apply()
		for _, n := range c.nodes {
			peer := &n.config.Peers[0]
			peer.CIDRs = slices.DeleteFunc(peer.CIDRs, func(p netip.Prefix) bool { return p == m.Seen })
			n.follow()
		}
	}
}
