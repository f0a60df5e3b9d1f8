package netops

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/netops/tunnel"
)

// Every cluster has the same internal and external CIDRs, as by default.
var (
	internalCIDR = netip.MustParsePrefix("10.80.0.0/16")
	externalCIDR = netip.MustParsePrefix("10.70.0.0/16")
)

// tunnelOverhead is what WireGuard adds to a packet, in bytes: IPv6 40, UDP 8, WireGuard 32.
const tunnelOverhead = 80

// side is a cluster as its peer calls it.
type side struct {
	*testCluster
	seenPods     []netip.Prefix // in the order of the cluster's pod CIDRs
	seenExternal netip.Prefix
}

// mappings are the ranges of the side as its peer knows them.
func (s side) mappings() []Mapping {
	all := make([]Mapping, 0, len(s.pods)+1)
	all = append(all, Mapping{Real: externalCIDR, Seen: s.seenExternal})
	for i, p := range s.pods {
		all = append(all, Mapping{Real: p, Seen: s.seenPods[i]})
	}
	return all
}

// seen is how the peer calls an address of a pod.
func (s side) seen(a netip.Addr) netip.Addr {
	for i, p := range s.pods {
		if p.Contains(a) {
			return swapped(a, s.seenPods[i])
		}
	}
	s.t.Fatalf("%s is no pod of cluster %s", a, s.name)
	return netip.Addr{}
}

func (s side) seenPod(node int) netip.Addr { return s.seen(s.pod(node)) }

// seenNode is the external address of a node as the peer calls it.
func (s side) seenNode(i int) netip.Addr { return swapped(s.internal(i), s.seenExternal) }

// swapped returns an address with the network bits of a range.
func swapped(a netip.Addr, p netip.Prefix) netip.Addr {
	bits, network := a.As4(), p.Masked().Addr().As4()
	for i := range bits {
		mask := byte(0xff << max(0, min(8, 8*(i+1)-p.Bits())))
		bits[i] = network[i]&mask | bits[i]&^mask
	}
	return netip.AddrFrom4(bits)
}

// testGateway is the gateway of one peering, in its pod's namespace.
type testGateway struct {
	namespace
	kernel *Kernel
	config GatewayConfig
	tunnel tunnel.Config
	device *tunnel.Device
}

// join makes a peering's two gateways, leads every node to them, and waits until the tunnel stands. The client
// begins.
func join(kind LinkKind, client, server side) {
	client.t.Helper()
	a, b := client.newGateway(kind, server, 2), server.newGateway(kind, client, 1)
	a.tunnel.Peer.PublicKey, b.tunnel.Peer.PublicKey = b.tunnel.PrivateKey.PublicKey(), a.tunnel.PrivateKey.PublicKey()
	b.tunnel.ListenPort, b.config.ListenPort = 51840, 51840
	// As a NodePort would: the server's first node leads to its gateway's pod.
	port := uint16(30000 + len(server.gateways))
	server.nodes[0].script("nft", "-f", "-")(
		fmt.Sprintf("table ip nodeport-%d {", port), "chain pre { type nat hook prerouting priority -100",
		fmt.Sprintf("fib daddr type local udp dport %d dnat to %s:%d", port, server.inPods(0, server.gatewayNumber(len(server.gateways)-1)), b.config.ListenPort), "}", "}",
	)
	a.tunnel.Peer.Endpoints = []string{netip.AddrPortFrom(server.node(0), port).String()}
	for _, n := range client.nodes {
		n.config.Peers[len(n.config.Peers)-1].Endpoints = []netip.Addr{server.node(0)}
	}
	a.tunnel.Peer.KeepAlive = 15 * time.Second
	for _, g := range []*testGateway{b, a} { // a handshake that nobody answers is repeated after 5 s only
		g.open()
	}
	for _, c := range []side{client, server} {
		for _, n := range c.nodes {
			n.follow()
		}
	}
	a.awaitTunnel()
}

// newGateway adds a gateway to a cluster, and to what its nodes are to know.
func (s side) newGateway(kind LinkKind, peer side, role byte) *testGateway {
	peering := len(s.gateways)
	pod := s.inPods(0, s.gatewayNumber(peering))
	mtu := min(s.mtu, peer.mtu) - tunnelOverhead
	overlay := OverlayConfig{Kind: kind, Port: 6091, MTU: s.mtu - 50} // IP 20, UDP 8, overlay 8, Ethernet 14
	g := &testGateway{namespace: s.attach(0, pod), config: GatewayConfig{
		Overlay: overlay, Pod: pod, Internal: numbered(internalCIDR, 0x8001+peering), InternalCIDR: internalCIDR,
		ExternalCIDR: externalCIDR, Pods: s.pods, Peer: peer.mappings(), VNI: uint32(7 + peering),
		Tunnel:     netip.PrefixFrom(netip.AddrFrom4([4]byte{169, 254, 18, role}), 30),
		TunnelPeer: netip.AddrFrom4([4]byte{169, 254, 18, 3 - role}), MTU: mtu, ClampMSS: true,
	}}
	g.run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=1") // as a host may have it, from which pods inherit
	g.kernel = g.namespace.kernel()
	s.gateways = append(s.gateways, g)
	toPeer := NodePeer{Name: peer.name, Gateway: g.config.Internal, Pod: pod, VNI: g.config.VNI, MTU: mtu, Nodes: cidr.Lower(peer.seenExternal)}
	for _, m := range g.config.Peer {
		toPeer.CIDRs = append(toPeer.CIDRs, m.Seen)
	}
	for i, n := range s.nodes {
		own := prefixes(s.podCIDR(i).String())
		peers := append(n.config.Peers, toPeer)
		n.config = NodeConfig{Overlay: overlay, Internal: s.internal(i), InternalCIDR: internalCIDR, Pods: own, Peers: peers}
		source := s.node(i)
		if i == 0 {
			source = s.inPods(0, bridgeNumber) // from the gateway's own node
		}
		g.config.Nodes = append(g.config.Nodes, GatewayNode{Internal: s.internal(i), Source: source, Pods: own})
	}
	key, err := wgtypes.GeneratePrivateKey()
	if err != nil {
		s.t.Fatal(err)
	}
	g.tunnel = tunnel.Config{
		Implementation: tunnel.Implementation(orEnv("LIQONET_TEST_WIREGUARD", "userspace")), Name: Tunnel,
		PrivateKey: tunnel.NewSecret(key), MTU: mtu,
		Peer: tunnel.PeerConfig{AllowedIPs: []netip.Prefix{cidr.Single(g.config.TunnelPeer)}},
	}
	for _, m := range g.config.Peer {
		g.tunnel.Peer.AllowedIPs = append(g.tunnel.Peer.AllowedIPs, m.Real)
	}
	return g
}

// open brings up firewall, tunnel and routes, in the order of the gateway's helper.
func (g *testGateway) open() {
	g.t.Helper()
	have, err := g.kernel.Observe()
	if err != nil {
		g.t.Fatal(err)
	}
	reach(g.t, g.kernel, GatewayState(g.config).Reachable(have))
	g.inside(func() (err error) {
		g.device, err = tunnel.Open(context.Background(), g.tunnel, slog.New(slog.DiscardHandler))
		return err
	})
	g.t.Cleanup(func() {
		if err := g.device.Close(); err != nil {
			g.t.Error(err)
		}
	})
	g.follow()
}

// follow brings a gateway into the state that its configuration asks for.
func (g *testGateway) follow() {
	g.t.Helper()
	reach(g.t, g.kernel, GatewayState(g.config))
}

// awaitTunnel asks the other end of the tunnel until it answers.
func (g *testGateway) awaitTunnel() {
	g.t.Helper()
	g.run("ping", "-q", "-c1", "-w20", "-i0.2", g.config.TunnelPeer.String()) // ends with the first answer
}

func orEnv(name, otherwise string) string {
	if v := strings.Fields(os.Getenv(name)); len(v) > 0 {
		return v[0]
	}
	return otherwise
}

// layout is the pod CIDRs of two clusters and how each is called by the other.
type layout struct{ podsA, podsB, seenA, seenB []netip.Prefix }

// equalRanges is the usual collision.
func equalRanges() layout {
	return layout{
		podsA: prefixes("10.244.0.0/16"), podsB: prefixes("10.244.0.0/16"),
		seenA: prefixes("10.11.0.0/16"), seenB: prefixes("10.12.0.0/16"),
	}
}

// build makes two clusters that are not joined yet. They can be changed before anything of them exists.
func (l layout) build(t *testing.T, change func(a, b *side)) (a, b side) {
	w := newWorld(t)
	a, b = w.side("a", 1, l.podsA, l.seenA), w.side("b", 2, l.podsB, l.seenB)
	if change != nil {
		change(&a, &b)
	}
	a.build()
	b.build()
	return a, b
}

// side declares a cluster, which is not built yet.
func (w *world) side(name string, number int, pods, seen []netip.Prefix) side {
	return side{
		testCluster: &testCluster{
			world: w, name: name, number: number, pods: pods, mtu: 1500, masquerades: true,
			nodeNetwork: netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 31, byte(number), 0}), 24),
		},
		seenPods: seen, seenExternal: netip.MustParsePrefix("10.71.0.0/16"),
	}
}
