package netops

import (
	"net"
	"net/netip"

	"liqonet.io/liqonet/netops/nft"
)

// nodeLike returns a state with all kinds of objects and two peers, similar to that of a node.
func nodeLike() State {
	return State{
		Links: []Link{{
			Name: Overlay, Kind: KindVXLAN, MAC: net.HardwareAddr{2, 0, 10, 80, 0, 1}, MTU: 1450, Port: 6091,
			Group: GroupOverlay, Forwarding: true,
		}},
		Addresses: []Address{{Overlay, netip.MustParsePrefix("10.80.0.1/32")}},
		Neighbours: []Neighbour{
			{Overlay, netip.MustParseAddr("10.80.128.1"), net.HardwareAddr{2, 0, 10, 80, 128, 1}},
			{Overlay, netip.MustParseAddr("10.80.128.2"), net.HardwareAddr{2, 0, 10, 80, 128, 2}},
		},
		Nexthops: []Nexthop{gatewayA("10.244.1.5"), gatewayB},
		Routes: []Route{
			{Table: RoutingTable, Dst: netip.MustParsePrefix("10.11.0.0/16"), Type: Unicast, Nexthop: NexthopBase + 1, MTU: 1370},
			{Table: RoutingTable, Dst: netip.MustParsePrefix("10.11.0.0/16"), Type: Unreachable, Metric: 9000},
			{Table: RoutingTable, Dst: netip.MustParsePrefix("10.12.0.0/16"), Type: Unicast, Nexthop: NexthopBase + 2, MTU: 1370},
			{Table: RoutingTable, Dst: netip.MustParsePrefix("10.12.0.0/16"), Type: Unreachable, Metric: 9000},
		},
		Rules: []Rule{
			{Priority: 103, From: netip.MustParsePrefix("10.244.1.5/32"), Table: mainTable},
			{Priority: 104, Table: RoutingTable},
		},
		Firewall: nft.Table{Name: Table, Chains: []nft.Chain{{Name: "guard"}}},
	}
}

// gatewayA returns the nexthop of the first peer with the given address of its gateway pod.
func gatewayA(pod string) Nexthop {
	return Nexthop{
		ID: NexthopBase + 1, Link: Overlay, VNI: 7, Via: netip.MustParseAddr("10.80.128.1"), Dst: netip.MustParseAddr(pod),
	}
}

var gatewayB = Nexthop{
	ID: NexthopBase + 2, Link: Overlay, VNI: 8, Via: netip.MustParseAddr("10.80.128.2"), Dst: netip.MustParseAddr("10.244.2.5"),
}
