package netops

import (
	"fmt"
	"slices"

	"liqonet.io/liqonet/netops/nft"
)

// Diff returns the steps that change one state to another. Unset fields of want match any value.
//
// The order keeps the guard closed. Unreachable routes and the firewall come before the steps that let packets pass,
// and each object comes before its users: rules, links, addresses, neighbours, nexthops, groups, routes. A group
// releases a nexthop before that is deleted; otherwise the kernel would delete the group with its last member, and its
// routes. (A rule for a table with only unreachable routes is part of the guard.) Before all of these, foreign links
// are removed from the groups by which the firewall identifies our links. Removal has the reverse order, the guard
// last. Desired objects are added before other objects are removed. Apply keeps the guard closed if the firewall cannot
// be written.
func Diff(have, want State) Plan {
	c := compare(have, canonical(want))
	var p Plan
	c.create(&p)
	c.remove(&p)
	return p
}

// changes are the differences of two states by kind. The kinds are not ordered.
type changes struct {
	links      linkDelta
	addresses  delta[Address]
	neighbours delta[Neighbour]
	nexthops   delta[Nexthop]
	groups     delta[NexthopGroup]
	refusals   delta[Route] // the guard routes, before all other changes; its removals are not used
	routes     delta[Route]
	rules      delta[Rule]
	kernels    delta[KernelRule]
	firewalls  delta[Firewall]
	passes     delta[nft.Pass]
}

// compare returns the differences. Objects that the kernel removes together with others count as missing, so that they
// are added again if desired.
func compare(have, want State) changes {
	c := changes{
		links:     compareLinks(have.Links, want.Links),
		refusals:  difference(have.Routes, Only(want.Routes, Route.Refuses)),
		rules:     difference(have.Rules, want.Rules),
		firewalls: compareFirewalls(have, want),
		passes:    comparePasses(have.ForwardChains, want.PassForward),
	}
	switch {
	case want.LocalRuleMoved && !have.LocalRuleMoved:
		c.kernels.remove = []KernelRule{{}}
	case have.LocalRuleMoved && !want.LocalRuleMoved:
		c.kernels.add = []KernelRule{{}}
	}
	for _, l := range c.links.recreate {
		have = withoutDependants(have, l.Name)
	}
	for _, l := range c.links.remove {
		have = withoutAddresses(have, l.Name)
	}
	c.addresses = difference(have.Addresses, want.Addresses)
	for _, a := range c.addresses.remove {
		if !slices.ContainsFunc(want.Addresses, func(w Address) bool { return w.Link == a.Link }) {
			have = withoutFlushed(have, a.Link)
		}
	}
	c.neighbours = difference(have.Neighbours, want.Neighbours)
	c.nexthops = difference(have.Nexthops, want.Nexthops)
	c.groups = difference(have.Groups, want.Groups)
	c.routes = difference(have.Routes, want.Routes)
	return c
}

// create appends the steps that add or change objects.
func (c changes) create(p *Plan) {
	put(p, Remove, c.links.expel)
	put(p, Add, c.refusals.add)
	put(p, Replace, c.refusals.change)
	put(p, Replace, c.firewalls.change)
	put(p, Add, c.rules.add)
	put(p, Remove, c.kernels.remove)
	put(p, Remove, c.links.recreate)
	put(p, Add, c.links.add)
	put(p, Replace, c.links.change)
	put(p, Add, c.addresses.add)
	put(p, Remove, c.addresses.remove)
	put(p, Add, c.neighbours.add)
	put(p, Replace, c.neighbours.change)
	put(p, Add, c.nexthops.add)
	put(p, Replace, c.nexthops.change)
	put(p, Add, c.groups.add)
	put(p, Replace, c.groups.change)
	put(p, Add, c.passes.add)
	put(p, Add, Only(c.routes.add, Route.Leads))
	put(p, Replace, Only(c.routes.change, Route.Leads))
}

// remove appends the steps that remove objects which no desired object uses.
func (c changes) remove(p *Plan) {
	put(p, Remove, c.passes.remove)
	put(p, Remove, Only(c.routes.remove, Route.Leads))
	put(p, Remove, c.groups.remove)
	put(p, Remove, c.nexthops.remove)
	put(p, Remove, c.neighbours.remove)
	put(p, Remove, c.links.remove)
	put(p, Add, c.kernels.add)
	put(p, Remove, c.rules.remove)
	put(p, Remove, Only(c.routes.remove, Route.Refuses))
	put(p, Remove, c.firewalls.remove)
}

// compareFirewalls returns the changes of tables. Tables are removed if no guard is desired.
func compareFirewalls(have, want State) (d delta[Firewall]) {
	for _, t := range []struct{ have, want nft.Table }{{have.Firewall, want.Firewall}, {have.Firewall6, want.Firewall6}} {
		switch p := nft.Diff(t.have, t.want); {
		case p.Empty():
		case want.Firewall.Name == "":
			d.remove = append(d.remove, Firewall{Plan: p})
		default:
			d.change = append(d.change, Firewall{Plan: p, Unfiltered: !filtersArrivals(t.have, t.want)})
		}
	}
	return d
}

// filtersArrivals reports whether a table has rules for all arriving packets for which the desired table has some: for
// those to the host itself and for forwarded ones. The table of GuardState has none, and neither has a table that
// another program has flushed.
func filtersArrivals(have, want nft.Table) bool {
	for _, point := range []string{"prerouting", "input", "forward"} {
		filters := func(c nft.Chain) bool {
			return c.Hook != nil && c.Hook.Type == "filter" && c.Hook.Point == point && len(c.Rules) > 0
		}
		if slices.ContainsFunc(want.Chains, filters) && !slices.ContainsFunc(have.Chains, filters) {
			return false
		}
	}
	return have.Name != "" && !have.Dormant
}

// put appends a step for each object.
func put[T fmt.Stringer](p *Plan, op Op, objects []T) {
	for _, o := range objects {
		p.Steps = append(p.Steps, Step{Op: op, Object: o})
	}
}

// Only returns the objects that satisfy the condition.
func Only[T any](objects []T, holds func(T) bool) []T {
	var kept []T
	for _, o := range objects {
		if holds(o) {
			kept = append(kept, o)
		}
	}
	return kept
}

// Leads reports whether packets pass by the route. Others reject them.
func (r Route) Leads() bool { return r.Type == Unicast || r.Type == Local }

// Refuses reports whether the route is one that rejects packets.
func (r Route) Refuses() bool { return !r.Leads() }

// withoutDependants returns the state after the deletion of a link: without its addresses, neighbours, nexthops and
// routes, these nexthops in groups, groups without members, and routes with such a nexthop or group.
func withoutDependants(s State, link string) State {
	s = withoutAddresses(s, link)
	lost := make(map[uint32]bool)
	for _, n := range s.Nexthops {
		lost[n.ID] = n.Link == link
	}
	s.Nexthops = Only(s.Nexthops, func(n Nexthop) bool { return !lost[n.ID] })
	s.Groups = slices.Clone(s.Groups)
	for i, g := range s.Groups {
		s.Groups[i].Members = Only(g.Members, func(id uint32) bool { return !lost[id] })
		lost[g.ID] = len(s.Groups[i].Members) == 0
	}
	s.Groups = Only(s.Groups, func(g NexthopGroup) bool { return !lost[g.ID] })
	s.Routes = Only(s.Routes, func(r Route) bool { return r.Link != link && !lost[r.Nexthop] })
	return s
}

// withoutAddresses returns the state without a link's addresses and neighbours.
func withoutAddresses(s State, link string) State {
	s.Addresses = Only(s.Addresses, func(a Address) bool { return a.Link != link })
	s.Neighbours = Only(s.Neighbours, func(n Neighbour) bool { return n.Link != link })
	return s
}

// withoutFlushed returns the state after the removal of a link's last address: its neighbours and the routes over the
// link are removed as well (fib_disable_ip in net/ipv4/fib_frontend.c).
func withoutFlushed(s State, link string) State {
	s = withoutAddresses(s, link)
	s.Routes = Only(s.Routes, func(r Route) bool { return r.Link != link })
	return s
}
