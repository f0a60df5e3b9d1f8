package netops

import (
	"net/netip"
	"testing"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/golden"
)

// desired are states as nodes and gateways get them, by the name of their golden file.
func desired() map[string]State {
	return map[string]State{
		"node":                 NodeState(nodeOfTwoPeers()),
		"node-without-gateway": NodeState(nodeBeforeGateway()),
		"gateway-server":       GatewayState(gatewayOfEqualClusters()),
		"gateway-client":       GatewayState(gatewayOfDisjointClusters()),
		"gateway-exposing":     GatewayState(gatewayOfExposedHosts()),
	}
}

// nodeOfTwoPeers has a peer of equal pod CIDRs, and one of disjoint ones that hears its tunnel inside the range
// of its pods; one of its pods has an address outside its pod CIDR.
func nodeOfTwoPeers() NodeConfig {
	return NodeConfig{
		Overlay:      OverlayConfig{Kind: KindVXLAN, Port: 6091, MTU: 1450},
		Internal:     netip.MustParseAddr("10.80.0.7"),
		InternalCIDR: netip.MustParsePrefix("10.80.0.0/16"),
		Pods:         prefixes("10.244.1.0/24", "10.244.9.3/32"),
		Peers: []NodePeer{
			{
				Name: "b", CIDRs: prefixes("10.11.0.0/16", "10.71.0.0/16"), Nodes: prefixes("10.71.0.0/17")[0], Gateway: netip.MustParseAddr("10.80.128.1"),
				Pod: netip.MustParseAddr("10.244.1.5"), Endpoints: []netip.Addr{netip.MustParseAddr("172.31.2.11")}, VNI: 7, MTU: 1370,
			},
			{
				Name: "c", CIDRs: prefixes("10.245.0.0/16", "10.246.0.0/16", "10.72.0.0/16"), Gateway: netip.MustParseAddr("10.80.128.2"),
				Pod: netip.MustParseAddr("10.244.2.8"), Endpoints: []netip.Addr{netip.MustParseAddr("10.245.3.4")}, VNI: 8, MTU: 1340,
			},
		},
	}
}

// nodeBeforeGateway has a peer whose gateway has no address yet: only the guard stands.
func nodeBeforeGateway() NodeConfig {
	c := nodeOfTwoPeers()
	c.Peers = c.Peers[:1]
	c.Peers[0].Pod, c.Peers[0].Endpoints = netip.Addr{}, nil
	return c
}

// gatewayOfEqualClusters serves a tunnel between clusters of the same ranges; a pod that moves is reported by
// both nodes.
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
		VNI: 7, Tunnel: netip.MustParsePrefix("169.254.18.1/30"), TunnelPeer: netip.MustParseAddr("169.254.18.2"),
		ListenPort: 51840, MTU: 1370, ClampMSS: true,
	}
}

// gatewayOfDisjointClusters is the client's, with nothing to translate but the nodes.
func gatewayOfDisjointClusters() GatewayConfig {
	c := gatewayOfEqualClusters()
	c.Overlay.Kind = KindGeneve
	c.Peer = []Mapping{
		{Real: netip.MustParsePrefix("10.245.0.0/16"), Seen: netip.MustParsePrefix("10.245.0.0/16")},
		{Real: netip.MustParsePrefix("10.72.0.0/16"), Seen: netip.MustParsePrefix("10.72.0.0/16")},
	}
	c.Tunnel, c.TunnelPeer = netip.MustParsePrefix("169.254.18.2/30"), netip.MustParseAddr("169.254.18.1")
	c.ListenPort, c.ClampMSS = 0, false
	return c
}

// gatewayOfExposedHosts lets the peer reach two hosts outside the cluster.
func gatewayOfExposedHosts() GatewayConfig {
	c := gatewayOfEqualClusters()
	c.Exposed = []Exposed{
		{Host: netip.MustParseAddr("198.51.100.7"), Address: netip.MustParseAddr("10.70.128.1")},
		{Host: netip.MustParseAddr("172.31.1.200"), Address: netip.MustParseAddr("10.70.128.2")},
	}
	return c
}

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

// TestDesired shows the plans that lead from nothing to the states of nodes and gateways.
func TestDesired(t *testing.T) {
	for name, state := range desired() {
		t.Run(name, func(t *testing.T) {
			golden.Check(t, name+".golden", Diff(State{}, state).String())
		})
	}
}

// TestRangesIsASet: nftables refuses ranges that overlap.
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

// TestReachable leaves out what needs a link that others make, and nothing else.
func TestReachable(t *testing.T) {
	want := GatewayState(gatewayOfEqualClusters())
	without := want.Reachable(State{})
	for _, step := range Diff(without, want).Steps {
		switch o := step.Object.(type) {
		case Link:
			if o.Name == Tunnel && step.Op == Replace {
				continue
			}
		case Address:
			if o.Link == Tunnel && step.Op == Add {
				continue
			}
		case Route:
			if o.Link == Tunnel && step.Op == Add {
				continue
			}
		}
		t.Errorf("left out too: %s", step)
	}
	for _, step := range Diff(State{}, without).Steps {
		switch o := step.Object.(type) {
		case Link:
			if o.Name == Tunnel {
				t.Errorf("not left out: %s", step)
			}
		case Route:
			if o.Link == Tunnel {
				t.Errorf("not left out: %s", step)
			}
		}
	}
	whole := want.Reachable(State{Links: []Link{{Name: Tunnel, Kind: KindDevice}}})
	if p := Diff(whole, want); !p.Empty() {
		t.Errorf("with the link there is still left out:\n%s", p)
	}
	if len(want.Links) != 2 {
		t.Error("Reachable changed the state that it was asked of")
	}
}
