package choose

import (
	"fmt"
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
)

// Number reserves a number for a peering, as the addresses of its gateways: the current number, that of its record (0:
// none); else one that the peering holds, as after an interruption; else the lowest free one. It is idempotent.
func Number(r *ipam.Registry, peering string, internal netip.Prefix, current int) (int, error) {
	owner, most := ipam.Peering(peering), records.MaxPeerings(internal)
	own, taken := []int{current}, map[int]bool{}
	for _, held := range r.Overlapping(internal) {
		number := records.NumberOf(internal, held.Range.Addr())
		switch {
		case held.Purpose != ipam.Gateways:
		case held.Owner == owner:
			own = append(own, number)
		default:
			taken[number] = true
		}
	}
	n := 1
	for taken[n] {
		n++
	}
	if i := slices.IndexFunc(own, func(n int) bool { return n >= 1 && n <= most && !taken[n] }); i >= 0 {
		n = own[i]
	}
	if n <= most {
		if err := r.Reserve(gateways(peering, internal, n)); err != nil {
			return 0, err
		}
		return n, releaseOthers(r, owner, oneOf([]netip.Prefix{records.GatewayAddresses(internal, n)}), ipam.Gateways)
	}
	return 0, hint.With(fmt.Errorf("number of peering %q: %w: internal CIDR %s has addresses for %d peerings", peering, ipam.ErrNoneFree, internal, most),
		"remove a peering: liqoctl network disconnect; or install liqonet again with a wider --internal-cidr: liqoctl network reset")
}

// gateways returns the reservation that is the number of a peering.
func gateways(peering string, internal netip.Prefix, number int) ipam.Reservation {
	return ipam.Reservation{Range: records.GatewayAddresses(internal, number), Owner: ipam.Peering(peering), Purpose: ipam.Gateways}
}
