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
	var used, all []uint32
	for _, g := range have.Groups {
		switch g.ID {
		case id:
			used, all = g.Members, append(all, g.Members...)
		case ofKind(nexthopArrival, id):
			all = append(all, g.Members...)
		}
	}
	p.Gateways = []NodeGateway{{Internal: cidr.Address(cidr.Number(internalCIDR.Masked().Addr()) + id&^nexthopKind)}}
	for _, n := range have.Nexthops {
		i := slices.IndexFunc(have.Links, func(l Link) bool { return l.Name == n.Link })
		if i < 0 || !slices.Contains(all, n.ID) {
			continue
		}
		g := NodeGateway{Internal: n.Via, Pod: have.Links[i].Remote, VNI: have.Links[i].VNI, Used: slices.Contains(used, n.ID)}
		if n.Via == p.Gateways[0].Internal {
			p.Gateways[0] = g
		} else {
			p.Gateways = append(p.Gateways, g)
		}
		for _, r := range have.Rules {
			if r.Priority == priorityExempt && r.From == cidr.Single(g.Pod) && !slices.Contains(p.Endpoints, r.To.Addr()) {
				p.Endpoints = append(p.Endpoints, r.To.Addr())
			}
		}
	}
	return p
}
