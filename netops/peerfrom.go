package netops

import (
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
)

// PeerFrom returns a peer as the observed state of a node has it: the inverse of NodeState, for a process whose records
// do not have the peer. Its ranges are those of the given ones to which a path leads; without any there is no such
// peer. A state has gateways whose pod is known; of the first gateway it has the internal address in any case, from
// which the ids of groups come. Local and Nodes are not set.
func PeerFrom(have State, internalCIDR netip.Prefix, ranges []netip.Prefix) (p NodePeer) {
	var id uint32
	for _, r := range have.Routes {
		if r.Table == RoutingTable && r.Leads() && slices.Contains(ranges, r.Dst) && (id == 0 || r.Nexthop == id) {
			id, p.MTU, p.CIDRs = r.Nexthop, r.MTU, append(p.CIDRs, r.Dst)
		}
	}
	if id == 0 {
		return NodePeer{}
	}
	_, ofGateways := cidr.Halves(internalCIDR)
	p.Gateways = gatewaysFrom(have, id, cidr.Address(cidr.Number(ofGateways.Addr())|id&nexthopNumber))
	for _, r := range have.Rules {
		from := slices.ContainsFunc(p.reachable(), func(g NodeGateway) bool { return r.From == cidr.Single(g.Pod) })
		if from && r.Priority == priorityExempt && !slices.Contains(p.Endpoints, r.To.Addr()) {
			p.Endpoints = append(p.Endpoints, r.To.Addr())
		}
	}
	return p
}

// gatewaysFrom returns the gateways of a peer whose packets take the group of an id.
func gatewaysFrom(have State, id uint32, first netip.Addr) []NodeGateway {
	var used, known []uint32
	for _, g := range have.Groups {
		switch g.ID {
		case id:
			used, known = g.Members, append(known, g.Members...)
		case ofKind(nexthopArrival, id):
			known = append(known, g.Members...)
		}
	}
	gateways := []NodeGateway{{Internal: first}}
	for _, n := range have.Nexthops {
		i := slices.IndexFunc(have.Links, func(l Link) bool { return l.Name == n.Link })
		if i < 0 || !slices.Contains(known, n.ID) {
			continue
		}
		g := NodeGateway{Internal: n.Via, Pod: have.Links[i].Remote, VNI: have.Links[i].VNI, Used: slices.Contains(used, n.ID)}
		if n.Via == first {
			gateways[0] = g
		} else {
			gateways = append(gateways, g)
		}
	}
	return gateways
}

// RangesFrom returns the ranges of peers that the observed state of a node routes or guards: all except for the
// internal CIDR, which is the route that the node's own address takes. It does not depend on records.
func RangesFrom(have State) []netip.Prefix {
	var internal, all []netip.Prefix
	for _, a := range have.Addresses {
		if r, ok := have.Longest(RoutingTable, a.Prefix.Addr()); ok {
			internal = append(internal, r.Dst)
		}
	}
	for _, r := range have.Routes {
		all = append(all, onlyIf(r.Table == RoutingTable, r.Dst)...)
	}
	for _, s := range have.Firewall.Sets {
		if s.Name == SetPeers {
			all = append(all, s.Elements...)
		}
	}
	all = Only(all, func(p netip.Prefix) bool { return !cidr.Within(p, internal) })
	slices.SortFunc(all, netip.Prefix.Compare)
	return slices.Compact(all)
}
