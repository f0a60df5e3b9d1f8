package netops

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/testbed/golden"
)

// desired returns the states of typical nodes and gateways by the name of their golden file.
func desired() map[string]State {
	return map[string]State{
		"node":                 NodeState(nodeOfTwoPeers()),
		"node-without-gateway": NodeState(nodeBeforeGateway()),
		"gateway-server":       GatewayState(gatewayOfEqualClusters()),
		"gateway-client":       GatewayState(gatewayOfDisjointClusters()),
		"gateway-exposing":     GatewayState(gatewayOfExposedHosts()),
		"node-of-gateways":     NodeState(nodeOfThreeGateways()),
		"gateway-of-tunnels":   GatewayState(gatewayOfTwoTunnels()),
	}
}

// nodeOfTwoPeers has a peer with equal pod CIDRs, and one with disjoint pod CIDRs whose tunnel endpoint is in the range
// of its pods. One pod of the node has an address outside its pod CIDR.
func nodeOfTwoPeers() NodeConfig {
	return NodeConfig{
		Overlay:      OverlayConfig{Kind: KindVXLAN, Port: 6091, MTU: 1450},
		Internal:     netip.MustParseAddr("10.80.0.7"),
		InternalCIDR: netip.MustParsePrefix("10.80.0.0/16"),
		Pods:         prefixes("10.244.1.0/24", "10.244.9.3/32"),
		Peers: []NodePeer{
			{
				Name: "b", CIDRs: prefixes("10.11.0.0/16", "10.71.0.0/16"), Nodes: prefixes("10.71.0.0/17")[0],
				Gateways:  []NodeGateway{{Internal: netip.MustParseAddr("10.80.128.1"), Pod: netip.MustParseAddr("10.244.1.5"), VNI: 7, Used: true}},
				Endpoints: []netip.Addr{netip.MustParseAddr("172.31.2.11")}, MTU: 1370,
			},
			{
				Name: "c", CIDRs: prefixes("10.245.0.0/16", "10.246.0.0/16", "10.72.0.0/16"),
				Gateways:  []NodeGateway{{Internal: netip.MustParseAddr("10.80.128.2"), Pod: netip.MustParseAddr("10.244.2.8"), VNI: 8, Used: true}},
				Endpoints: []netip.Addr{netip.MustParseAddr("10.245.3.4")}, MTU: 1340,
			},
		},
	}
}

// nodeBeforeGateway has a peer whose gateway has no address yet, so that there is only the guard.
func nodeBeforeGateway() NodeConfig {
	c := nodeOfTwoPeers()
	c.Peers = c.Peers[:1]
	c.Peers[0].Gateways[0].Pod, c.Peers[0].Endpoints = netip.Addr{}, nil
	return c
}

// gatewayOfEqualClusters has a tunnel between clusters with the same ranges. Both nodes report a pod that moves.
func gatewayOfEqualClusters() GatewayConfig {
	return GatewayConfig{
		Overlay:      OverlayConfig{Kind: KindVXLAN, Port: 6091, MTU: 1450},
		Pod:          netip.MustParseAddr("10.244.1.5"),
		Internal:     netip.MustParseAddr("10.80.128.1"),
		InternalCIDR: netip.MustParsePrefix("10.80.0.0/16"),
		ExternalCIDR: netip.MustParsePrefix("10.70.0.0/16"),
		Pods:         prefixes("10.244.0.0/16"),
		Peer: []Mapping{
			{Real: netip.MustParsePrefix("10.244.0.0/16"), Seen: netip.MustParsePrefix("10.11.0.0/16")},
			{Real: netip.MustParsePrefix("10.70.0.0/16"), Seen: netip.MustParsePrefix("10.71.0.0/16")},
		},
		Nodes: []GatewayNode{
			{netip.MustParseAddr("10.80.0.7"), netip.MustParseAddr("10.244.1.1"), prefixes("10.244.1.0/24", "10.244.9.3/32")},
			{netip.MustParseAddr("10.80.0.8"), netip.MustParseAddr("172.31.1.12"), prefixes("10.244.2.0/24", "10.244.9.3/32")},
		},
		VNI: 7, MTU: 1370, ClampMSS: true,
		Tunnels: []GatewayTunnel{{
			Link: Tunnel, Address: netip.MustParsePrefix("169.254.18.1/30"), Peer: netip.MustParseAddr("169.254.18.2"), ListenPort: 51840, Used: true,
		}},
	}
}

// gatewayOfDisjointClusters is a WireGuard client that translates only the addresses of nodes.
func gatewayOfDisjointClusters() GatewayConfig {
	c := gatewayOfEqualClusters()
	c.Overlay.Kind = KindGeneve
	c.Peer = []Mapping{
		{Real: netip.MustParsePrefix("10.245.0.0/16"), Seen: netip.MustParsePrefix("10.245.0.0/16")},
		{Real: netip.MustParsePrefix("10.72.0.0/16"), Seen: netip.MustParsePrefix("10.72.0.0/16")},
	}
	c.Tunnels = []GatewayTunnel{{
		Link: Tunnel, Address: netip.MustParsePrefix("169.254.18.2/30"), Peer: netip.MustParseAddr("169.254.18.1"), Used: true,
	}}
	c.ClampMSS = false
	return c
}

// gatewayOfExposedHosts exposes two hosts outside the cluster to the peer.
func gatewayOfExposedHosts() GatewayConfig {
	c := gatewayOfEqualClusters()
	c.Exposed = []Exposed{
		{Host: netip.MustParseAddr("198.51.100.7"), Address: netip.MustParseAddr("10.70.128.1")},
		{Host: netip.MustParseAddr("172.31.1.200"), Address: netip.MustParseAddr("10.70.128.2")},
	}
	return c
}

// nodeOfThreeGateways has a peer with three gateways, all used.
func nodeOfThreeGateways() NodeConfig {
	c := nodeOfTwoPeers()
	c.Peers = c.Peers[:1]
	for i := range byte(2) {
		c.Peers[0].Gateways = append(c.Peers[0].Gateways, NodeGateway{
			Internal: netip.AddrFrom4([4]byte{10, 80, 128, 2 + i}), Pod: netip.AddrFrom4([4]byte{10, 244, 3 + i, 6}), VNI: 9 + uint32(i), Used: true,
		})
	}
	return c
}

// gatewayOfTwoTunnels has a peer with two gateways, and exposes a host.
func gatewayOfTwoTunnels() GatewayConfig {
	c := gatewayOfExposedHosts()
	c.Exposed = c.Exposed[:1]
	c.Tunnels = append(c.Tunnels, GatewayTunnel{
		Link: Tunnel + "1", Address: netip.MustParsePrefix("169.254.18.5/30"), Peer: netip.MustParseAddr("169.254.18.6"), ListenPort: 51841, Used: true,
	})
	return c
}

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

// TestDesired compares the plans for the states of nodes and gateways, from an empty state, with golden files.
func TestDesired(t *testing.T) {
	for name, state := range desired() {
		t.Run(name, func(t *testing.T) {
			golden.Check(t, name+".golden", Diff(State{}, state).String())
		})
	}
}

// TestRangesIsASet: nftables rejects overlapping ranges in a set.
func TestRangesIsASet(t *testing.T) {
	got := cidr.Outermost(prefixes("10.2.0.0/16", "10.1.2.0/24", "10.1.0.0/16", "10.2.0.0/16", "10.1.0.0/32"))
	want := prefixes("10.1.0.0/16", "10.2.0.0/16")
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("ranges %v, want %v", got, want)
	}
}

func TestNexthopIDStaysInItsBand(t *testing.T) {
	cidr := netip.MustParsePrefix("10.80.0.0/16")
	for address, want := range map[string]uint32{"10.80.0.0": 0x4c000000, "10.80.0.7": 0x4c000007, "10.80.255.255": 0x4c00ffff} {
		if got := NexthopID(cidr, netip.MustParseAddr(address)); got != want || got&NexthopMask != NexthopBase {
			t.Errorf("id of %s: %#x, want %#x", address, got, want)
		}
	}
}

// TestReachable: exactly the objects that depend on a missing device are left out.
func TestReachable(t *testing.T) {
	want := GatewayState(gatewayOfEqualClusters())
	without := want.Reachable(State{})
	got := Diff(without, want).String()
	if diff := cmp.Diff(`~ link lqn-tunnel mtu 1370 group 19458 forwarding
+ address 169.254.18.1/30 dev lqn-tunnel
+ nexthop 0x4dfe1201 dev lqn-tunnel
+ nexthop-group 0x4e008001 0x4dfe1201
+ route 10.11.0.0/16 table 7601 nexthop 0x4e008001 mtu 1370
+ route 10.70.0.0/16 table 7601 nexthop 0x4e008001 mtu 1370
+ route 10.71.0.0/16 table 7601 nexthop 0x4e008001 mtu 1370
+ route 10.244.0.0/16 table 7601 nexthop 0x4e008001 mtu 1370
`, got); diff != "" {
		t.Errorf("what is left out:\n%s", diff)
	}
	whole := want.Reachable(State{Links: []Link{{Name: Tunnel, Kind: KindDevice}}})
	if p := Diff(whole, want); !p.Empty() {
		t.Errorf("with the link there is still left out:\n%s", p)
	}
	if len(want.Links) != 2 {
		t.Error("Reachable changed the state that it was asked of")
	}
}

// TestReachableGroup: a group keeps the tunnels that exist.
func TestReachableGroup(t *testing.T) {
	want := GatewayState(gatewayOfTwoTunnels())
	got := want.Reachable(State{Links: []Link{{Name: Tunnel + "1", Kind: KindDevice}}})
	if len(got.Groups) != 1 || !slices.Equal(got.Groups[0].Members, []uint32{0x4dfe1205}) {
		t.Errorf("groups %v, want one of the tunnel that is there", got.Groups)
	}
	if len(want.Groups[0].Members) != 2 {
		t.Error("Reachable changed the state that it was asked of")
	}
}

// TestLastMember removes gateways and tunnels from their groups: unused ones are not members unless all are unused.
func TestLastMember(t *testing.T) {
	t.Parallel()
	const first, second, third = 0x4c008001, 0x4c008002, 0x4c008003
	for _, test := range []struct {
		used, known [3]bool
		want        []uint32
	}{
		{[3]bool{true, true, true}, [3]bool{true, true, true}, []uint32{first, second, third}},
		{[3]bool{true, false, true}, [3]bool{true, true, true}, []uint32{first, third}},
		{[3]bool{false, false, true}, [3]bool{true, true, true}, []uint32{third}},
		{[3]bool{false, false, false}, [3]bool{true, true, true}, []uint32{first, second, third}},
		{[3]bool{false, false, true}, [3]bool{true, true, false}, []uint32{first, second}},
		{[3]bool{true, true, true}, [3]bool{false, false, true}, []uint32{third}},
	} {
		c := nodeOfThreeGateways()
		for i := range c.Peers[0].Gateways {
			g := &c.Peers[0].Gateways[i]
			g.Used = test.used[i]
			if !test.known[i] {
				g.Pod = netip.Addr{}
			}
		}
		s := NodeState(c)
		if got := s.Groups[0]; got.ID != 0x4e008001 || !slices.Equal(got.Members, test.want) {
			t.Errorf("used %v, known %v: %s, want %x", test.used, test.known, got, test.want)
		}
	}
	g := gatewayOfTwoTunnels()
	g.Tunnels[1].Used = false
	if got := GatewayState(g).Groups[0].Members; !slices.Equal(got, []uint32{0x4dfe1201}) {
		t.Errorf("one tunnel used: %x", got)
	}
	g.Tunnels[0].Used = false
	if got := GatewayState(g).Groups[0].Members; !slices.Equal(got, []uint32{0x4dfe1201, 0x4dfe1205}) {
		t.Errorf("no tunnel used: %x", got)
	}
}

// TestGroupChangeIsOneStep: a change of members does not change routes, rules or links.
func TestGroupChangeIsOneStep(t *testing.T) {
	t.Parallel()
	c := nodeOfThreeGateways()
	before := NodeState(c)
	c.Peers[0].Gateways[1].Used = false
	if got, want := Diff(before, NodeState(c)).String(), "~ nexthop-group 0x4e008001 0x4c008001 0x4c008003\n"; got != want {
		t.Errorf("a gateway that leaves:\n%swant:\n%s", got, want)
	}
	g := gatewayOfTwoTunnels()
	before = GatewayState(g)
	g.Tunnels[0].Used = false
	if got, want := Diff(before, GatewayState(g)).String(), "~ nexthop-group 0x4e008001 0x4dfe1205\n"; got != want {
		t.Errorf("a tunnel that leaves:\n%swant:\n%s", got, want)
	}
}
