package topology

import (
	"net"
	"net/netip"

	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/nft"
)

// NodeLike returns a state with all kinds of objects and two peers, similar to that of a node.
func NodeLike() netops.State {
	return netops.State{
		Links: []netops.Link{{
			Name: netops.Overlay, Kind: netops.KindVXLAN, MAC: net.HardwareAddr{2, 0, 10, 80, 0, 1}, MTU: 1450, Port: 6091,
			Group: netops.GroupOverlay, Forwarding: true,
		}},
		Addresses: []netops.Address{{Link: netops.Overlay, Prefix: netip.MustParsePrefix("10.80.0.1/32")}},
		Neighbours: []netops.Neighbour{
			{Link: netops.Overlay, IP: netip.MustParseAddr("10.80.128.1"), MAC: net.HardwareAddr{2, 0, 10, 80, 128, 1}},
			{Link: netops.Overlay, IP: netip.MustParseAddr("10.80.128.2"), MAC: net.HardwareAddr{2, 0, 10, 80, 128, 2}},
		},
		Nexthops: []netops.Nexthop{GatewayA("10.244.1.5"), gatewayB},
		Routes: []netops.Route{
			{Table: netops.RoutingTable, Dst: netip.MustParsePrefix("10.11.0.0/16"), Type: netops.Unicast, Nexthop: netops.NexthopBase + 1, MTU: 1370},
			{Table: netops.RoutingTable, Dst: netip.MustParsePrefix("10.11.0.0/16"), Type: netops.Unreachable, Metric: 9000},
			{Table: netops.RoutingTable, Dst: netip.MustParsePrefix("10.12.0.0/16"), Type: netops.Unicast, Nexthop: netops.NexthopBase + 2, MTU: 1370},
			{Table: netops.RoutingTable, Dst: netip.MustParsePrefix("10.12.0.0/16"), Type: netops.Unreachable, Metric: 9000},
		},
		Rules: []netops.Rule{
			{Priority: 103, From: netip.MustParsePrefix("10.244.1.5/32"), Table: netops.MainTable},
			{Priority: 104, Table: netops.RoutingTable},
		},
		Firewall: nft.Table{Name: netops.Table, Chains: []nft.Chain{{Name: "guard"}}},
	}
}

// GatewayA returns the nexthop of the first peer with the given address of its gateway pod.
func GatewayA(pod string) netops.Nexthop {
	return netops.Nexthop{
		ID: netops.NexthopBase + 1, Link: netops.Overlay, VNI: 7, Via: netip.MustParseAddr("10.80.128.1"), Dst: netip.MustParseAddr(pod),
	}
}

var gatewayB = netops.Nexthop{
	ID: netops.NexthopBase + 2, Link: netops.Overlay, VNI: 8, Via: netip.MustParseAddr("10.80.128.2"), Dst: netip.MustParseAddr("10.244.2.5"),
}
