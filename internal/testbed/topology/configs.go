// Package topology has configurations and states of typical nodes and gateways, for tests of netops.
package topology

import (
	"net/netip"

	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/netops"
)

// Desired returns the states of typical nodes and gateways by the name of their golden file.
func Desired() map[string]netops.State {
	return map[string]netops.State{
		"node":                 netops.NodeState(NodeOfTwoPeers()),
		"node-without-gateway": netops.NodeState(nodeBeforeGateway()),
		"gateway-server":       netops.GatewayState(GatewayOfEqualClusters()),
		"gateway-client":       netops.GatewayState(gatewayOfDisjointClusters()),
		"gateway-exposing":     netops.GatewayState(gatewayOfExposedHosts()),
		"node-of-gateways":     netops.NodeState(NodeOfThreeGateways()),
		"gateway-of-tunnels":   netops.GatewayState(GatewayOfTwoTunnels()),
		"gateway-carrying":     netops.GatewayState(gatewayOfWebSocket()),
		"gateway-plain-server": netops.GatewayState(gatewayOfPlainTunnels()),
		"gateway-plain-client": netops.GatewayState(gatewayOfPlainTunnel()),
	}
}

// NodeOfTwoPeers has a peer with equal pod CIDRs, and one with disjoint pod CIDRs whose tunnel endpoint is in the range
// of its pods. One pod of the node has an address outside its pod CIDR.
func NodeOfTwoPeers() netops.NodeConfig {
	return netops.NodeConfig{
		Overlay:      netops.OverlayConfig{Kind: netops.KindVXLAN, Port: 6091, MTU: 1450},
		Internal:     netip.MustParseAddr("10.80.0.7"),
		InternalCIDR: netip.MustParsePrefix("10.80.0.0/16"),
		Pods:         parsed.Prefixes("10.244.1.0/24", "10.244.9.3/32"),
		Peers: []netops.NodePeer{
			{
				Name: "b", CIDRs: parsed.Prefixes("10.11.0.0/16", "10.71.0.0/16"), Nodes: parsed.Prefixes("10.71.0.0/17")[0],
				Gateways:  []netops.NodeGateway{{Internal: netip.MustParseAddr("10.80.128.1"), Pod: netip.MustParseAddr("10.244.1.5"), VNI: 7, Used: true}},
				Endpoints: []netip.Addr{netip.MustParseAddr("172.31.2.11")}, MTU: 1370,
			},
			{
				Name: "c", CIDRs: parsed.Prefixes("10.245.0.0/16", "10.246.0.0/16", "10.72.0.0/16"),
				Gateways:  []netops.NodeGateway{{Internal: netip.MustParseAddr("10.80.128.2"), Pod: netip.MustParseAddr("10.244.2.8"), VNI: 8, Used: true}},
				Endpoints: []netip.Addr{netip.MustParseAddr("10.245.3.4")}, MTU: 1340,
			},
		},
	}
}

// nodeBeforeGateway has a peer whose gateway has no address yet, so that there is only the guard.
func nodeBeforeGateway() netops.NodeConfig {
	c := NodeOfTwoPeers()
	c.Peers = c.Peers[:1]
	c.Peers[0].Gateways[0].Pod, c.Peers[0].Endpoints = netip.Addr{}, nil
	return c
}

// GatewayOfEqualClusters has a tunnel between clusters with the same ranges. Both nodes report a pod that moves.
func GatewayOfEqualClusters() netops.GatewayConfig {
	return netops.GatewayConfig{
		Overlay:      netops.OverlayConfig{Kind: netops.KindVXLAN, Port: 6091, MTU: 1450},
		Pod:          netip.MustParseAddr("10.244.1.5"),
		Internal:     netip.MustParseAddr("10.80.128.1"),
		InternalCIDR: netip.MustParsePrefix("10.80.0.0/16"),
		ExternalCIDR: netip.MustParsePrefix("10.70.0.0/16"),
		Pods:         parsed.Prefixes("10.244.0.0/16"),
		Peer: []netops.Mapping{
			{Real: netip.MustParsePrefix("10.244.0.0/16"), Seen: netip.MustParsePrefix("10.11.0.0/16")},
			{Real: netip.MustParsePrefix("10.70.0.0/16"), Seen: netip.MustParsePrefix("10.71.0.0/16")},
		},
		Nodes: []netops.GatewayNode{
			{Internal: netip.MustParseAddr("10.80.0.7"), Source: netip.MustParseAddr("10.244.1.1"), Pods: parsed.Prefixes("10.244.1.0/24", "10.244.9.3/32")},
			{Internal: netip.MustParseAddr("10.80.0.8"), Source: netip.MustParseAddr("172.31.1.12"), Pods: parsed.Prefixes("10.244.2.0/24", "10.244.9.3/32")},
		},
		VNI: 7, MTU: 1370, ClampMSS: true,
		Tunnels: []netops.GatewayTunnel{{
			Link: netops.Tunnel, Address: netip.MustParsePrefix("169.254.18.1/30"), Peer: netip.MustParseAddr("169.254.18.2"), ListenPort: 51840, Used: true,
		}},
	}
}

// gatewayOfDisjointClusters is a WireGuard client that translates only the addresses of nodes.
func gatewayOfDisjointClusters() netops.GatewayConfig {
	c := GatewayOfEqualClusters()
	c.Overlay.Kind = netops.KindGeneve
	c.Peer = []netops.Mapping{
		{Real: netip.MustParsePrefix("10.245.0.0/16"), Seen: netip.MustParsePrefix("10.245.0.0/16")},
		{Real: netip.MustParsePrefix("10.72.0.0/16"), Seen: netip.MustParsePrefix("10.72.0.0/16")},
	}
	c.Tunnels = []netops.GatewayTunnel{{
		Link: netops.Tunnel, Address: netip.MustParsePrefix("169.254.18.2/30"), Peer: netip.MustParseAddr("169.254.18.1"), Used: true,
	}}
	c.ClampMSS = false
	return c
}

// gatewayOfExposedHosts exposes two hosts outside the cluster to the peer.
func gatewayOfExposedHosts() netops.GatewayConfig {
	c := GatewayOfEqualClusters()
	c.Exposed = []netops.Exposed{
		{Host: netip.MustParseAddr("198.51.100.7"), Address: netip.MustParseAddr("10.70.128.1")},
		{Host: netip.MustParseAddr("172.31.1.200"), Address: netip.MustParseAddr("10.70.128.2")},
	}
	return c
}

// gatewayOfWebSocket carries its tunnel, and accepts connections. A real gateway does one of the two.
func gatewayOfWebSocket() netops.GatewayConfig {
	c := GatewayOfEqualClusters()
	c.Carries, c.WebSocketPort = true, netops.WebSocketPort
	return c
}

// NodeOfThreeGateways has a peer with three gateways, all used.
func NodeOfThreeGateways() netops.NodeConfig {
	c := NodeOfTwoPeers()
	c.Peers = c.Peers[:1]
	for i := range byte(2) {
		c.Peers[0].Gateways = append(c.Peers[0].Gateways, netops.NodeGateway{
			Internal: netip.AddrFrom4([4]byte{10, 80, 128, 2 + i}), Pod: netip.AddrFrom4([4]byte{10, 244, 3 + i, 6}), VNI: 9 + uint32(i), Used: true,
		})
	}
	return c
}

// GatewayOfTwoTunnels has a peer with two gateways, and exposes a host.
func GatewayOfTwoTunnels() netops.GatewayConfig {
	c := gatewayOfExposedHosts()
	c.Exposed = c.Exposed[:1]
	c.Tunnels = append(c.Tunnels, netops.GatewayTunnel{
		Link: netops.Tunnel + "1", Address: netip.MustParsePrefix("169.254.18.5/30"), Peer: netip.MustParseAddr("169.254.18.6"), ListenPort: 51841, Used: true,
	})
	return c
}

// gatewayOfPlainTunnels is a server without encryption.
func gatewayOfPlainTunnels() netops.GatewayConfig {
	c := GatewayOfTwoTunnels()
	for i := range c.Tunnels {
		c.Tunnels[i].ListenPort = 51840 + uint16(i)
	}
	c.Plain = &netops.Plain{VNI: 0xc0ffee, Sources: parsed.Prefixes("192.0.2.0/24", "198.51.100.7/32")}
	return c
}

// gatewayOfPlainTunnel is a client without encryption.
func gatewayOfPlainTunnel() netops.GatewayConfig {
	c := gatewayOfDisjointClusters()
	c.Tunnels[0].ListenPort = netops.PlainPort
	c.Plain = &netops.Plain{VNI: 0xc0ffee}
	return c
}
