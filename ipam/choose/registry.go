package choose

import (
	"cmp"
	"slices"

	"liqonet.io/liqonet/ipam"
)

// NoneFreeHint is the hint if no range is free.
const NoneFreeHint = "add pools with --pool or --remote-pool (in an installed cluster: liqoctl network init --pool CIDR,... --update), or release ranges: liqoctl ipam list"

// ReservedPeerings returns the names of the peerings that have reservations, sorted.
func ReservedPeerings(r *ipam.Registry) []string {
	var names []string
	for _, h := range r.List() {
		if name, ok := h.Owner.Peering(); ok {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, cmp.Compare)
	return slices.Compact(names)
}
