package netops

import (
	"net/netip"

	"liqonet.io/liqonet/netops/nft"
)

// GuardState returns the desired state of the host namespace of a node that knows only the ranges of peers: packets to
// these ranges are blocked, and there is no link to any peer. Without ranges the state is empty.
func GuardState(ranges []netip.Prefix) State {
	if len(ranges) == 0 {
		return State{}
	}
	s := State{
		Rules: []Rule{{Priority: PriorityNode, Table: RoutingTable}},
		Firewall: nft.Table{
			Name: Table,
			Sets: []nft.Set{nft.NewSet(SetPeers, ranges...)},
			Chains: []nft.Chain{{
				Name: guardChain, Hook: &nft.Hook{Type: "filter", Point: "postrouting", Priority: priorityGuard},
				Rules: []nft.Rule{{nft.DAddrIn(SetPeers), nft.Counter(), nft.Drop()}},
			}},
		},
	}
	for _, p := range ranges {
		s.Routes = append(s.Routes, GuardRoute(RoutingTable, p))
	}
	return s
}
