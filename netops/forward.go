package netops

import (
	"slices"

	"liqonet.io/liqonet/netops/nft"
)

// comparePasses returns the rules to add to and remove from foreign chains. An existing rule remains while it is
// desired, even if the chain's policy has changed.
func comparePasses(chains []nft.ForwardChain, wanted bool) delta[nft.Pass] {
	var d delta[nft.Pass]
	for _, c := range chains {
		if !wanted {
			d.remove = append(d.remove, c.Passes...)
			continue
		}
		for _, way := range []nft.Way{nft.From, nft.To} {
			p := nft.Pass{Family: c.Family, Table: c.Table, Chain: c.Name, Way: way, Link: Prefix + "*"}
			if c.Drop && !slices.Contains(c.Passes, p) {
				d.add = append(d.add, p)
			}
		}
	}
	return d
}
