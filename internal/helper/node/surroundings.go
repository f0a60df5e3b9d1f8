//go:build linux

package node

import (
	"fmt"
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops/kernel"
)

// surroundings determines the addresses that the node uses besides those of pods, Services and peers. The zero value is
// ready to use.
type surroundings struct {
	last  records.Surroundings
	found cached[records.Surroundings]
}

// record returns the ranges in use for the node's report. If the kernel cannot be read, it returns the last ones.
func (s *surroundings) record(v view, internal netip.Addr, kernel *kernel.Kernel) (records.Surroundings, error) {
	found, err := s.found.get(ownRanges(v, internal), func(own []netip.Prefix) (records.Surroundings, error) {
		found, err := kernel.Surroundings()
		if err != nil {
			return records.Surroundings{}, fmt.Errorf("look for ranges in use: %w", err)
		}
		return records.SurroundingsOf(found.Routes, found.Addresses, own), nil
	})
	if err == nil {
		s.last = found
	}
	return s.last, err
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
