package netops_test

import (
	"net/netip"
	"testing"

	"liqonet.io/liqonet/internal/testbed/topology"
	"liqonet.io/liqonet/netops"
)

// TestLookup: the first rule with a route is used, and in its table the longest prefix with the lowest metric.
func TestLookup(t *testing.T) {
	node, gateway := netops.NodeState(topology.NodeOfThreeGateways()), netops.GatewayState(topology.GatewayOfEqualClusters())
	for _, test := range []struct {
		name, from, to, iif string
		state               netops.State
		rule                int
		route               string
	}{
		{"to a pod of the peer", "10.244.1.7", "10.71.4.5", "", node, 104, "route 10.71.0.0/16 table 7600 nexthop 0x4e008001 src 10.80.0.7 mtu 1370"},
		{"to a gateway", "10.80.0.7", "10.80.128.1", "", node, 104, "route 10.80.128.1/32 table 7600 nexthop 0x4c008001 src 10.80.0.7 mtu 1370"},
		{"to a node", "10.80.0.7", "10.80.0.8", "", node, 104, "route 10.80.0.0/16 unreachable table 7600 metric 1073741824"},
		{"to another network", "10.244.1.7", "192.0.2.1", "", node, 0, ""},
		{"of no link", "10.244.1.7", "10.244.1.9", "", gateway, 0, ""},
		{"into the tunnel", "10.244.1.7", "10.244.1.9", "lqn-overlay", gateway, 53, ""},
		{"out of the tunnel, to no pod", "10.71.1.7", "10.244.77.9", "lqn-tunnel", gateway, 54, "route 0.0.0.0/0 unreachable table 7602 metric 1073741824"},
	} {
		rule, route, ok := test.state.Lookup(netops.Packet{From: netip.MustParseAddr(test.from), To: netip.MustParseAddr(test.to), IIf: test.iif})
		if ok != (test.rule != 0) || rule.Priority != test.rule || test.route != "" && route.String() != test.route {
			t.Errorf("%s: %s, %s", test.name, rule, route)
		}
	}
}
