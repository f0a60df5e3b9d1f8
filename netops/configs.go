package netops

import "net/netip"

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
