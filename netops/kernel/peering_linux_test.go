package kernel

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/tunnel"
	"liqonet.io/liqonet/netops/tunnel/wireguard"
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
func (s side) mappings() []netops.Mapping {
	all := make([]netops.Mapping, 0, len(s.pods)+1)
	all = append(all, netops.Mapping{Real: externalCIDR, Seen: s.seenExternal})
	for i, p := range s.pods {
		all = append(all, netops.Mapping{Real: p, Seen: s.seenPods[i]})
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

// testGateway is a gateway of one peering, in its pod's namespace.
type testGateway struct {
	namespace
	kernel  *Kernel
	config  netops.GatewayConfig
	key     wireguard.Secret
	tunnels []*testTunnel // as in config
}

// testTunnel is a tunnel to a gateway of the peer.
type testTunnel struct {
	config wireguard.Config
	device *wireguard.Device
}

// join makes a peering of two clusters with a gateway each.
func join(kind netops.LinkKind, client, server side) { joinAll(kind, client, server, 1, 1) }

// eachPair runs a test for each kind of overlay, with two clusters of equal ranges that have a gateway each.
func eachPair(t *testing.T, test func(t *testing.T, a, b side)) {
	eachOverlay(t, func(t *testing.T, kind netops.LinkKind) {
		a, b := equalRanges().build(t, nil)
		join(kind, a, b)
		test(t, a, b)
	})
}

// firstPair makes such clusters with the first kind of overlay.
func firstPair(t *testing.T) (a, b side) {
	a, b = equalRanges().build(t, nil)
	join(overlays()[0], a, b)
	return a, b
}

// joinAll makes a peering's gateways, so many in each cluster, and a tunnel from each to each, leads every node to
// them, and waits until the tunnels stand. The client begins.
func joinAll(kind netops.LinkKind, client, server side, atClient, atServer int) (ofClient, ofServer []*testGateway) {
	client.t.Helper()
	ofClient, ofServer = client.newGateways(kind, server, atClient), server.newGateways(kind, client, atServer)
	for i, a := range ofClient {
		for j, b := range ofServer {
			server.connect(a, b, i*atServer+j)
		}
	}
	for _, n := range client.nodes {
		n.config.Peers[len(n.config.Peers)-1].Endpoints = []netip.Addr{server.node(0)}
	}
	for _, g := range slices.Concat(ofServer, ofClient) { // a handshake without an answer is repeated only after 5 s
		g.open()
	}
	for _, c := range []side{client, server} {
		for _, n := range c.nodes {
			n.follow()
		}
	}
	for _, g := range ofClient {
		g.awaitTunnels()
	}
	return ofClient, ofServer
}

// connect makes a tunnel from a client's gateway to one of this cluster.
func (s side) connect(client, server *testGateway, number int) {
	end := func(role int) netip.Addr { return numbered(netip.MustParsePrefix("169.254.18.0/24"), 4*number+role) }
	toServer, toClient := client.newTunnel(server, end(2), end(1)), server.newTunnel(client, end(1), end(2))
	// As a NodePort would: the server's first node leads to its gateway's pod.
	listen := 51840 + len(server.tunnels) - 1
	port := 30000 + 1 + slices.Index(s.gateways, server) + 100*(len(server.tunnels)-1)
	s.nodes[0].Chain(fmt.Sprintf("nodeport-%d", port), "pre", "nat hook prerouting priority -100",
		fmt.Sprintf("fib daddr type local udp dport %d dnat to %s:%d", port, server.config.Pod, listen))
	toServer.Endpoints = []string{netip.AddrPortFrom(s.node(0), uint16(port)).String()}
	toServer.KeepAlive = 15 * time.Second
	toClient.ListenPort = uint16(listen)
	server.config.Tunnels[len(server.tunnels)-1].ListenPort = uint16(listen)
}

// newTunnel adds one end of a tunnel to a gateway.
func (g *testGateway) newTunnel(to *testGateway, own, far netip.Addr) *wireguard.Config {
	link := netops.Tunnel
	if n := len(g.tunnels); n > 0 {
		link += fmt.Sprint(n)
	}
	g.config.Tunnels = append(g.config.Tunnels, netops.GatewayTunnel{Link: link, Address: netip.PrefixFrom(own, 30), Peer: far, Used: true})
	t := &testTunnel{config: wireguard.Config{
		Config: tunnel.Config{
			Implementation: orEnv("LIQONET_TEST_WIREGUARD", "userspace"), Name: link, MTU: g.config.MTU, AllowedIPs: []netip.Prefix{cidr.Single(far)},
		},
		PrivateKey: g.key, PublicKey: to.key.PublicKey(),
	}}
	for _, m := range g.config.Peer {
		t.config.AllowedIPs = append(t.config.AllowedIPs, m.Real)
	}
	g.tunnels = append(g.tunnels, t)
	return &t.config
}

// newGateways adds gateways for a peer to a cluster, and to what its nodes are to know.
func (s side) newGateways(kind netops.LinkKind, peer side, count int) []*testGateway {
	toPeer := netops.NodePeer{Name: peer.name, MTU: min(s.mtu, peer.mtu) - tunnelOverhead, Nodes: cidr.Lower(peer.seenExternal)}
	for _, m := range peer.mappings() {
		toPeer.CIDRs = append(toPeer.CIDRs, m.Seen)
	}
	overlay := netops.OverlayConfig{Kind: kind, Port: 6091, MTU: s.mtu - 50} // IP 20, UDP 8, overlay 8, Ethernet 14
	first := len(s.gateways)
	for range count {
		g := s.newGateway(overlay, peer, toPeer.MTU)
		toPeer.Gateways = append(toPeer.Gateways, netops.NodeGateway{Internal: g.config.Internal, Pod: g.config.Pod, VNI: g.config.VNI, Used: true})
	}
	for i, n := range s.nodes {
		peers := append(n.config.Peers, toPeer)
		peers[len(peers)-1].Gateways = slices.Clone(toPeer.Gateways)
		for j := range toPeer.Gateways {
			peers[len(peers)-1].Gateways[j].Local = i == 0 // that is where they run
		}
		n.config = netops.NodeConfig{Overlay: overlay, Internal: s.internal(i), InternalCIDR: internalCIDR, Pods: parsed.Prefixes(s.podCIDR(i).String()), Peers: peers}
	}
	return s.gateways[first:]
}

// newGateway adds a gateway to a cluster.
func (s side) newGateway(overlay netops.OverlayConfig, peer side, mtu int) *testGateway {
	number := len(s.gateways)
	pod := s.inPods(0, s.gatewayNumber(number))
	g := &testGateway{namespace: s.attach(0, pod), config: netops.GatewayConfig{
		Overlay: overlay, Pod: pod, Internal: numbered(internalCIDR, 0x8001+number), InternalCIDR: internalCIDR,
		ExternalCIDR: externalCIDR, Pods: s.pods, Peer: peer.mappings(), VNI: uint32(7 + number), MTU: mtu, ClampMSS: true,
	}}
	g.Run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=1") // as a host may have it, from which pods inherit
	g.kernel = g.namespace.kernel()
	s.gateways = append(s.gateways, g)
	for i := range s.nodes {
		source := s.node(i)
		if i == 0 {
			source = s.inPods(0, bridgeNumber) // from the gateway's own node
		}
		g.config.Nodes = append(g.config.Nodes, netops.GatewayNode{Internal: s.internal(i), Source: source, Pods: parsed.Prefixes(s.podCIDR(i).String())})
	}
	key, err := wgtypes.GeneratePrivateKey()
	require.NoError(s.t, err)
	g.key = wireguard.NewSecret(key)
	return g
}

// open brings up firewall, tunnels and routes, in the order of the gateway's helper.
func (g *testGateway) open() {
	g.t.Helper()
	have := observe(g.t, g.kernel)
	reach(g.t, g.kernel, netops.GatewayState(g.config).Reachable(have))
	for _, t := range g.tunnels {
		g.Inside(func() (err error) {
			t.device, err = wireguard.Open(t.config, slog.New(slog.DiscardHandler), func() {})
			return err
		})
		g.t.Cleanup(func() {
			assert.NoError(g.t, t.device.Close(false))
		})
	}
	g.follow()
}

// follow brings a gateway into the state that its configuration asks for.
func (g *testGateway) follow() {
	g.t.Helper()
	reach(g.t, g.kernel, netops.GatewayState(g.config))
}

// awaitTunnels asks the other end of each tunnel until it answers.
func (g *testGateway) awaitTunnels() {
	g.t.Helper()
	for _, t := range g.config.Tunnels {
		g.Run("ping", "-q", "-c1", "-w20", "-i0.2", t.Peer.String()) // ends with the first answer
	}
}

// allow has WireGuard accept from, and send to, some ranges by the first tunnel.
func (g *testGateway) allow(ranges []netip.Prefix) {
	g.t.Helper()
	t := g.tunnels[0]
	t.config.AllowedIPs = ranges
	g.Inside(func() error {
		_, err := t.device.Apply(t.config)
		return err
	})
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
		podsA: parsed.Prefixes("10.244.0.0/16"), podsB: parsed.Prefixes("10.244.0.0/16"),
		seenA: parsed.Prefixes("10.11.0.0/16"), seenB: parsed.Prefixes("10.12.0.0/16"),
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
