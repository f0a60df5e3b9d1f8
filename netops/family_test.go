package netops_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/testbed/topology"
	"liqonet.io/liqonet/netops"
)

// TestTwoFamilies: the state of two address families is the union of both, on the links and with the packet filter of
// IPv4. Ids differ by the family bit alone, MAC addresses not at all. Of IPv6, this is what netops can compute: no
// packet filter, and no kernel that has it.
func TestTwoFamilies(t *testing.T) {
	t.Parallel()
	ipv6 := netops.NodeState(nodeOfIPv6(topology.NodeOfThreeGateways()))
	checkUnion(t, netops.NodeState(topology.NodeOfThreeGateways()), ipv6,
		netops.NodeState(topology.NodeOfThreeGateways(), nodeOfIPv6(topology.NodeOfThreeGateways())))
	ipv6 = netops.GatewayState(gatewayOfIPv6(topology.GatewayOfTwoTunnels()))
	checkUnion(t, netops.GatewayState(topology.GatewayOfTwoTunnels()), ipv6,
		netops.GatewayState(topology.GatewayOfTwoTunnels(), gatewayOfIPv6(topology.GatewayOfTwoTunnels())))
}

func checkUnion(t *testing.T, ipv4, ipv6, both netops.State) {
	t.Helper()
	const family = 1 << 23
	ids := map[uint32]bool{}
	for i, n := range ipv4.Nexthops {
		ids[n.ID], ids[ipv6.Nexthops[i].ID] = true, true
		if ipv6.Nexthops[i].ID != n.ID|family || n.ID&family != 0 {
			t.Errorf("nexthops %s and %s: want ids that differ by the family", n, ipv6.Nexthops[i])
		}
	}
	for i, g := range ipv4.Groups {
		ids[g.ID], ids[ipv6.Groups[i].ID] = true, true
		if ipv6.Groups[i].ID != g.ID|family || g.ID&family != 0 {
			t.Errorf("groups %s and %s: want ids that differ by the family", g, ipv6.Groups[i])
		}
		for j, id := range g.Members {
			if ipv6.Groups[i].Members[j] != id|family {
				t.Errorf("groups %s and %s: want members of their family", g, ipv6.Groups[i])
			}
		}
	}
	if all := len(both.Nexthops) + len(both.Groups); len(ids) != all || all != 2*(len(ipv4.Nexthops)+len(ipv4.Groups)) {
		t.Errorf("%d ids of %d nexthops and groups", len(ids), all)
	}
	for i, n := range ipv4.Neighbours {
		if n.MAC.String() != ipv6.Neighbours[i].MAC.String() {
			t.Errorf("neighbours %s and %s: want one MAC", n, ipv6.Neighbours[i])
		}
	}
	for _, r := range ipv6.Routes {
		if r.Dst.Addr().Is4() {
			t.Errorf("%s: want a route of IPv6", r)
		}
	}
	want := ipv4
	want.Addresses = slices.Concat(ipv4.Addresses, ipv6.Addresses)
	want.Neighbours = slices.Concat(ipv4.Neighbours, ipv6.Neighbours)
	want.Nexthops = slices.Concat(ipv4.Nexthops, ipv6.Nexthops)
	want.Groups = slices.Concat(ipv4.Groups, ipv6.Groups)
	want.Routes = slices.Concat(ipv4.Routes, ipv6.Routes)
	want.Rules = slices.Concat(ipv4.Rules, ipv6.Rules)
	if !reflect.DeepEqual(want, both) {
		t.Errorf("want the union:\n%s", netops.Diff(both, want))
	}
	if plan := netops.Diff(ipv4, both); slices.ContainsFunc(plan.Steps, func(s netops.Step) bool { return s.Op != netops.Add }) {
		t.Errorf("to both families:\n%swant additions alone", plan)
	}
}

// TestIDsOfWidestCIDR: in an internal CIDR of /8, offsets need a bit more than an id has. The ends of one kind, nodes
// or gateways, have different ids nevertheless, without the family bit, and PeerFrom finds the first gateway.
func TestIDsOfWidestCIDR(t *testing.T) {
	t.Parallel()
	widest := netip.MustParsePrefix("10.0.0.0/8")
	lower, upper := cidr.Halves(widest)
	for _, half := range []netip.Prefix{lower, upper} {
		ids := map[uint32]netip.Addr{}
		for _, n := range []uint32{1, 2, 1 << 8, 1 << 16, 1<<22 - 1, 1 << 22, 1<<22 + 1, 1<<23 - 1} {
			a, _ := cidr.Nth(half, n)
			id := netops.NexthopID(widest, a)
			if other, is := ids[id]; is || id&netops.NexthopMask != netops.NexthopBase || id >= netops.NexthopBase+1<<23 {
				t.Errorf("%s has id %#x, as %v", a, id, other)
			}
			ids[id] = a
		}
	}
	c := topology.NodeOfThreeGateways()
	c.InternalCIDR = widest
	for i := range c.Peers[0].Gateways {
		c.Peers[0].Gateways[i].Internal, _ = cidr.Nth(upper, uint32(8+i))
	}
	first := c.Peers[0].Gateways[0].Internal
	c.Peers[0].Gateways[0].Pod = netip.Addr{}
	if found := netops.PeerFrom(netops.NodeState(c), widest, c.Peers[0].CIDRs); len(found.Gateways) == 0 || found.Gateways[0].Internal != first {
		t.Errorf("first gateway of %v, want %s", found.Gateways, first)
	}
}

// inIPv6 returns the addresses of IPv6 that contain a range of IPv4 as their last 32 bits.
func inIPv6(p netip.Prefix) netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf("fd4c:6c71::%s/%d", p.Addr(), 96+p.Bits()))
}

func addressInIPv6(a netip.Addr) netip.Addr { return inIPv6(cidr.Single(a)).Addr() }

func each[T any](all []T, change func(T) T) (changed []T) {
	for _, one := range all {
		changed = append(changed, change(one))
	}
	return changed
}

// nodeOfIPv6 returns the configuration of a node for IPv6. Addresses outside the overlay stay.
func nodeOfIPv6(c netops.NodeConfig) netops.NodeConfig {
	c.Internal, c.InternalCIDR, c.Pods = addressInIPv6(c.Internal), inIPv6(c.InternalCIDR), each(c.Pods, inIPv6)
	c.Peers = each(c.Peers, func(p netops.NodePeer) netops.NodePeer {
		p.CIDRs, p.Nodes = each(p.CIDRs, inIPv6), inIPv6(p.Nodes)
		p.Gateways = each(p.Gateways, func(g netops.NodeGateway) netops.NodeGateway {
			g.Internal = addressInIPv6(g.Internal)
			return g
		})
		return p
	})
	return c
}

// gatewayOfIPv6 returns the configuration of a gateway for IPv6. Addresses outside overlay and tunnel stay.
func gatewayOfIPv6(c netops.GatewayConfig) netops.GatewayConfig {
	c.Internal, c.InternalCIDR, c.ExternalCIDR, c.Pods = addressInIPv6(c.Internal), inIPv6(c.InternalCIDR), inIPv6(c.ExternalCIDR), each(c.Pods, inIPv6)
	c.Peer = each(c.Peer, func(m netops.Mapping) netops.Mapping {
		return netops.Mapping{Real: inIPv6(m.Real), Seen: inIPv6(m.Seen)}
	})
	c.Exposed = each(c.Exposed, func(e netops.Exposed) netops.Exposed {
		return netops.Exposed{Host: addressInIPv6(e.Host), Address: addressInIPv6(e.Address)}
	})
	c.Nodes = each(c.Nodes, func(n netops.GatewayNode) netops.GatewayNode {
		n.Internal, n.Pods = addressInIPv6(n.Internal), each(n.Pods, inIPv6)
		return n
	})
	c.Tunnels = each(c.Tunnels, func(t netops.GatewayTunnel) netops.GatewayTunnel {
		t.Address, t.Peer = inIPv6(t.Address), addressInIPv6(t.Peer)
		return t
	})
	return c
}
