package netops_test

import (
	"net/netip"
	"slices"
	"testing"

	"liqonet.io/liqonet/internal/testbed/topology"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/nft"
)

// TestPeerFrom checks that the states of nodes have all of a peer that a node needs to keep it: whatever gateways and
// endpoints are known, the state from the found peer is the same.
func TestPeerFrom(t *testing.T) {
	t.Parallel()
	captured, apart := topology.NodeOfTwoPeers(), topology.NodeOfThreeGateways()
	captured.Peers[0].Endpoints = []netip.Addr{captured.Peers[0].CIDRs[0].Addr().Next(), netip.MustParseAddr("203.0.113.9")}
	apart.Peers[0].Gateways[1].Used = false
	for name, c := range map[string]netops.NodeConfig{
		"two peers": topology.NodeOfTwoPeers(), "an endpoint among the peer's pods": captured,
		"three gateways": topology.NodeOfThreeGateways(), "one is not used": apart,
		"the first is not known": withoutPods(0), "only the last is known": withoutPods(0, 1), "the first alone": withoutPods(1, 2),
	} {
		want := netops.NodeState(c)
		for i, p := range c.Peers {
			ranges := append([]netip.Prefix{netip.MustParsePrefix("10.99.0.0/16")}, p.CIDRs...)
			found := netops.PeerFrom(want, c.InternalCIDR, ranges)
			if len(found.Gateways) == 0 || found.Gateways[0].Internal != p.Gateways[0].Internal {
				t.Fatalf("%s: first gateway of %v, want %s", name, found.Gateways, p.Gateways[0].Internal)
			}
			found.Name, found.Nodes = p.Name, p.Nodes
			for j := range found.Gateways {
				for _, g := range p.Gateways {
					found.Gateways[j].Local = found.Gateways[j].Local || g.Local && g.Internal == found.Gateways[j].Internal
				}
			}
			c.Peers[i] = found
		}
		if diff := netops.Diff(want, netops.NodeState(c)); !diff.Empty() {
			t.Errorf("%s: from the state to that of the peers found in it:\n%s", name, diff)
		}
	}
	if found := netops.PeerFrom(netops.NodeState(withoutPods(0, 1, 2)), apart.InternalCIDR, apart.Peers[0].CIDRs); len(found.CIDRs) > 0 {
		t.Errorf("without a path: %+v", found)
	}
	if found := netops.PeerFrom(netops.GuardState(apart.Peers[0].CIDRs), apart.InternalCIDR, apart.Peers[0].CIDRs); len(found.CIDRs) > 0 {
		t.Errorf("of the guard alone: %+v", found)
	}
}

// TestRangesFrom checks that the ranges of all peers are found in the state of a node, also in what remains if another
// program has removed its table or its routes.
func TestRangesFrom(t *testing.T) {
	t.Parallel()
	guardOnly := topology.NodeOfThreeGateways().PeerCIDRs()
	held := topology.NodeOfTwoPeers()
	held.HeldBack = []netip.Prefix{netip.MustParsePrefix("10.99.0.0/16")}
	noTable, noRoutes := netops.NodeState(held), netops.NodeState(held)
	noTable.Firewall, noRoutes.Routes = nft.Table{}, nil
	for name, test := range map[string]struct {
		have netops.State
		want []netip.Prefix
	}{
		"nothing": {}, "the guard alone": {netops.GuardState(guardOnly), guardOnly},
		"paths": {netops.NodeState(topology.NodeOfThreeGateways()), guardOnly}, "no paths": {netops.NodeState(withoutPods(0, 1, 2)), guardOnly},
		"held back": {netops.NodeState(held), held.PeerCIDRs()}, "no table": {noTable, held.PeerCIDRs()}, "no routes": {noRoutes, held.PeerCIDRs()},
	} {
		if got := netops.RangesFrom(test.have); !slices.Equal(got, test.want) {
			t.Errorf("%s: ranges %v, want %v", name, got, test.want)
		}
	}
}

// withoutPods returns the node of three gateways, where the pods of some are not known.
func withoutPods(unknown ...int) netops.NodeConfig {
	c := topology.NodeOfThreeGateways()
	for _, i := range unknown {
		c.Peers[0].Gateways[i].Pod = netip.Addr{}
	}
	return c
}
