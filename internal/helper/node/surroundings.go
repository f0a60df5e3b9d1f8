//go:build linux

package node

import (
	"fmt"
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
)

// surroundings returns the addresses that the node uses besides those of pods, Services and peers. If the kernel cannot
// be read, it returns the last ones.
func (l *loop) surroundings(v view) (records.Surroundings, error) {
	_, err := l.around.get(ownRanges(v, l.claims.internal), func(own []netip.Prefix) (records.Surroundings, error) {
		found, err := l.Kernel.Surroundings()
		if err != nil {
			return records.Surroundings{}, fmt.Errorf("look for ranges in use: %w", err)
		}
		return records.SurroundingsOf(found.Routes, found.Addresses, own), nil
	})
	return l.around.value, err
}

// ownRanges returns the ranges of the node's own cluster and of its peers, which liqoctl has in the records.
func ownRanges(v view, internal netip.Addr) []netip.Prefix {
	own := v.ranges()
	if internal.IsValid() {
		own = append(own, cidr.Single(internal))
	}
	if v.fabric == nil {
		return own
	}
	own = slices.Concat(own, v.fabric.PodCIDRs, v.fabric.ServiceCIDRs)
	if len(v.Peerings) > 0 { // before, others may use the range that was chosen for it
		own = slices.Concat(own, v.fabric.InternalCIDRs, v.fabric.ExternalCIDRs)
	}
	return own
}
