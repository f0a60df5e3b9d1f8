package choose

import (
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
)

// Gateways describes the gateways of a peering in a cluster.
type Gateways struct {
	Peering  string
	Internal netip.Prefix // the cluster's internal CIDR
	Count    int
	// Current are the addresses of the gateways in the peering's record; that of gateway n has index n-1.
	Current []netip.Addr
}

// Gateway has the values that the registry assigned to a gateway.
type Gateway struct {
	Address netip.Addr
	Overlay uint32 // virtual network identifier
}

// Reserve assigns an address to each gateway: its current one; else one that the peering holds, as after an
// interruption, the lowest first; else a free one. It is idempotent.
func (g Gateways) Reserve(r *ipam.Registry) ([]Gateway, error) {
	held, err := r.AcquireAddresses(ipam.Request{Owner: ipam.Peering(g.Peering), Purpose: ipam.GatewayAddress}, UpperHalf(g.Internal), g.Count)
	if err != nil {
		return nil, err
	}
	current := g.Current[:min(len(g.Current), g.Count)]
	spare := slices.DeleteFunc(slices.Clone(held), func(a netip.Addr) bool { return slices.Contains(current, a) })
	all := make([]Gateway, g.Count)
	for i := range all {
		var a netip.Addr
		if i < len(current) && slices.Contains(held, current[i]) {
			a = current[i]
		} else {
			a, spare = spare[0], spare[1:]
		}
		all[i] = Gateway{a, cidr.Offset(g.Internal, a)}
	}
	return all, nil
}

// ReleaseGateways releases the addresses of a peering's gateways that are no longer in its record.
func ReleaseGateways(r *ipam.Registry, p records.Peering) error {
	stay := make([]netip.Prefix, len(p.Gateways))
	for i, g := range p.Gateways {
		stay[i] = cidr.Single(g.Address)
	}
	return releaseOthers(r, ipam.Peering(p.Name), ipam.GatewayAddress, stay)
}
