package netops

import (
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/netops/nft"
)

// Additions returns the steps that add guards for ranges of peers. Other state of the kernel is not compared: none of
// it is removed or replaced. If a new range covers an element of the set of ranges, the element is replaced within one
// transaction.
//
// A range inside the destination of a unicast route is guarded by the unreachable route next to that one; a more
// specific unreachable route would override the unicast route. If the table has a guard chain, the chain has the rules
// for the existing routes, and only its set is extended.
func Additions(have State, ranges []netip.Prefix) Plan {
	paths := Only(have.Routes, func(r Route) bool { return r.Table == RoutingTable && r.Leads() })
	ranges = Only(ranges, func(p netip.Prefix) bool {
		return !slices.ContainsFunc(paths, func(r Route) bool { return r.Dst.Bits() < p.Bits() && cidr.Covers(r.Dst, p) })
	})
	if len(ranges) == 0 {
		return Plan{}
	}
	want := canonical(GuardState(ranges))
	if guard := &want.Firewall.Chains[0]; len(paths) > 0 { // another program deleted the table; the routes remain
		guard.Rules = slices.Insert(guard.Rules, 0, nft.Rule{nft.OIfGroup(GroupOverlay), nft.Accept()})
	}
	var p Plan
	put(&p, Add, difference(have.Routes, want.Routes).add)
	if table := nft.Diff(guardOf(have.Firewall, want.Firewall)); !table.Empty() {
		put(&p, Replace, []Firewall{{Plan: table}})
	}
	put(&p, Add, difference(have.Rules, want.Rules).add)
	return p
}

// guardOf returns the guard in an observed table before and after the other guard is added.
func guardOf(have, add nft.Table) (before, after nft.Table) {
	before, after = have, add
	before.Sets = Only(have.Sets, func(s nft.Set) bool { return s.Name == SetPeers })
	before.Chains = Only(have.Chains, func(c nft.Chain) bool { return c.Name == guardChain })
	for _, s := range before.Sets {
		after.Sets = []nft.Set{nft.NewSet(SetPeers, slices.Concat(s.Elements, add.Sets[0].Elements)...)}
	}
	if len(before.Chains) > 0 && len(before.Chains[0].Rules) > 0 {
		before.Chains, after.Chains = nil, nil
	}
	return before, after
}
