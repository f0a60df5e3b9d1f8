package addresses

import (
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
)

// Gateways are those that a peering has in a cluster.
type Gateways struct {
	Peering  string
	Internal netip.Prefix // the cluster's internal CIDR
	Count    int
	// Standing are the addresses of those that the peering's record names, by their number less one.
	Standing []netip.Addr
}

// Gateway is what the registry gave to one of them.
type Gateway struct {
	Address netip.Addr
	Overlay uint32 // virtual network identifier
}

// Reserve finds an address for each gateway: the one that it stands with, else one that the peering holds, as after an
// interruption, the lowest first, else a free one. Doing it again changes nothing.
func (g Gateways) Reserve(r *ipam.Registry) ([]Gateway, error) {
	held, err := r.AcquireAddresses(ipam.Request{Owner: ipam.Peering(g.Peering), Purpose: ipam.GatewayAddress}, UpperHalf(g.Internal), g.Count)
	if err != nil {
		return nil, err
	}
	standing := g.Standing[:min(len(g.Standing), g.Count)]
	spare := slices.DeleteFunc(slices.Clone(held), func(a netip.Addr) bool { return slices.Contains(standing, a) })
	all := make([]Gateway, g.Count)
	for i := range all {
		var a netip.Addr
		if i < len(standing) && slices.Contains(held, standing[i]) {
			a = standing[i]
		} else {
			a, spare = spare[0], spare[1:]
		}
		all[i] = Gateway{a, cidr.Offset(g.Internal, a)}
	}
	return all, nil
}

// ReleaseGateways releases what the gateways of a peering had that are no longer among those of its record.
func ReleaseGateways(r *ipam.Registry, p records.Peering) error {
	stay := make([]netip.Prefix, len(p.Gateways))
	for i, g := range p.Gateways {
		stay[i] = cidr.Single(g.Address)
	}
	return releaseOthers(r, ipam.Peering(p.Name), ipam.GatewayAddress, stay)
}
