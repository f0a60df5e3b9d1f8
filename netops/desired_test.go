package netops_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/topology"
	"liqonet.io/liqonet/netops"
)

// TestDesired compares the plans for the states of nodes and gateways, from an empty state, with golden files.
func TestDesired(t *testing.T) {
	for name, state := range topology.Desired() {
		t.Run(name, func(t *testing.T) {
			golden.Check(t, name+".golden", netops.Diff(netops.State{}, state).String())
		})
	}
}

// TestRangesIsASet: nftables rejects overlapping ranges in a set.
func TestRangesIsASet(t *testing.T) {
	got := cidr.Outermost(parsed.Prefixes("10.2.0.0/16", "10.1.2.0/24", "10.1.0.0/16", "10.2.0.0/16", "10.1.0.0/32"))
	want := parsed.Prefixes("10.1.0.0/16", "10.2.0.0/16")
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("ranges %v, want %v", got, want)
	}
}

func TestNexthopIDStaysInItsBand(t *testing.T) {
	cidr := netip.MustParsePrefix("10.80.0.0/16")
	for address, want := range map[string]uint32{"10.80.0.0": 0x4c000000, "10.80.0.7": 0x4c000007, "10.80.255.255": 0x4c00ffff} {
		if got := netops.NexthopID(cidr, netip.MustParseAddr(address)); got != want || got&netops.NexthopMask != netops.NexthopBase {
			t.Errorf("id of %s: %#x, want %#x", address, got, want)
		}
	}
}

// TestReachable: exactly the objects that depend on a missing device are left out.
func TestReachable(t *testing.T) {
	want := netops.GatewayState(topology.GatewayOfEqualClusters())
	without := want.Reachable(netops.State{})
	got := netops.Diff(without, want).String()
	if diff := cmp.Diff(`~ link lqn-tunnel mtu 1370 group 19458 forwarding
+ address 169.254.18.1/30 dev lqn-tunnel
+ nexthop 0x4d7e1201 dev lqn-tunnel
+ nexthop-group 0x4e008001 0x4d7e1201
+ route 10.11.0.0/16 table 7601 nexthop 0x4e008001 mtu 1370
+ route 10.70.0.0/16 table 7601 nexthop 0x4e008001 mtu 1370
+ route 10.71.0.0/16 table 7601 nexthop 0x4e008001 mtu 1370
+ route 10.244.0.0/16 table 7601 nexthop 0x4e008001 mtu 1370
`, got); diff != "" {
		t.Errorf("what is left out:\n%s", diff)
	}
	whole := want.Reachable(netops.State{Links: []netops.Link{{Name: netops.Tunnel, Kind: netops.KindDevice}}})
	if p := netops.Diff(whole, want); !p.Empty() {
		t.Errorf("with the link there is still left out:\n%s", p)
	}
	if len(want.Links) != 2 {
		t.Error("Reachable changed the state that it was asked of")
	}
}

// TestReachableGroup: a group keeps the tunnels that exist.
func TestReachableGroup(t *testing.T) {
	want := netops.GatewayState(topology.GatewayOfTwoTunnels())
	got := want.Reachable(netops.State{Links: []netops.Link{{Name: netops.Tunnel + "1", Kind: netops.KindDevice}}})
	if len(got.Groups) != 1 || !slices.Equal(got.Groups[0].Members, []uint32{0x4d7e1205}) {
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
		c := topology.NodeOfThreeGateways()
		for i := range c.Peers[0].Gateways {
			g := &c.Peers[0].Gateways[i]
			g.Used = test.used[i]
			if !test.known[i] {
				g.Pod = netip.Addr{}
			}
		}
		s := netops.NodeState(c)
		if got := s.Groups[0]; got.ID != 0x4e008001 || !slices.Equal(got.Members, test.want) {
			t.Errorf("used %v, known %v: %s, want %x", test.used, test.known, got, test.want)
		}
	}
	g := topology.GatewayOfTwoTunnels()
	g.Tunnels[1].Used = false
	if got := netops.GatewayState(g).Groups[0].Members; !slices.Equal(got, []uint32{0x4d7e1201}) {
		t.Errorf("one tunnel used: %x", got)
	}
	g.Tunnels[0].Used = false
	if got := netops.GatewayState(g).Groups[0].Members; !slices.Equal(got, []uint32{0x4d7e1201, 0x4d7e1205}) {
		t.Errorf("no tunnel used: %x", got)
	}
}

// TestGroupChangeIsOneStep: a change of members does not change routes, rules or links.
func TestGroupChangeIsOneStep(t *testing.T) {
	t.Parallel()
	c := topology.NodeOfThreeGateways()
	before := netops.NodeState(c)
	c.Peers[0].Gateways[1].Used = false
	if got, want := netops.Diff(before, netops.NodeState(c)).String(), "~ nexthop-group 0x4e008001 0x4c008001 0x4c008003\n"; got != want {
		t.Errorf("a gateway that leaves:\n%swant:\n%s", got, want)
	}
	g := topology.GatewayOfTwoTunnels()
	before = netops.GatewayState(g)
	g.Tunnels[0].Used = false
	if got, want := netops.Diff(before, netops.GatewayState(g)).String(), "~ nexthop-group 0x4e008001 0x4d7e1205\n"; got != want {
		t.Errorf("a tunnel that leaves:\n%swant:\n%s", got, want)
	}
}
