package serving

import (
	"fmt"
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
)

// Range is a range of addresses with its use.
type Range struct {
	netip.Prefix
	Use     string // for messages
	Peering string // whose peer has the range; "": the cluster itself
}

// Ranges are disjoint ranges, sorted. The zero value has none.
type Ranges []Range

// Add adds ranges of the cluster itself. Of overlapping ranges, only the widest stays.
func (r *Ranges) Add(use string, prefixes ...netip.Prefix) {
	for _, p := range prefixes {
		r.add(Range{Prefix: p, Use: use})
	}
}

// addPeer adds the ranges of a peering's peer.
func (r *Ranges) addPeer(p records.Peering) {
	for _, seen := range p.Seen() {
		r.add(Range{seen, fmt.Sprintf("the range of peering %q:", p.Name), p.Name})
	}
}

func (r *Ranges) add(wanted Range) {
	near, overlaps := r.Overlapping(wanted.Prefix)
	if overlaps && cidr.Covers(near.Prefix, wanted.Prefix) {
		return
	}
	if overlaps {
		*r = slices.DeleteFunc(*r, func(o Range) bool { return cidr.Covers(wanted.Prefix, o.Prefix) })
	}
	*r = slices.Insert(*r, r.place(wanted.Prefix), wanted)
}

// Overlapping returns a range that overlaps p.
func (r Ranges) Overlapping(p netip.Prefix) (Range, bool) {
	i := r.place(p)
	for _, near := range r[max(i-1, 0):min(i+1, len(r))] {
		if near.Overlaps(p) {
			return near, true
		}
	}
	return Range{}, false
}

// prefixes returns the ranges alone.
func (r Ranges) prefixes() []netip.Prefix {
	all := make([]netip.Prefix, len(r))
	for i, one := range r {
		all[i] = one.Prefix
	}
	return all
}

// routes reports whether one of the ranges is of a peer, and contains all of p.
func (r Ranges) routes(p netip.Prefix) bool {
	near, overlaps := r.Overlapping(p)
	return overlaps && near.Peering != "" && cidr.Covers(near.Prefix, p)
}

// Conflict returns an error if p overlaps one of the ranges; nil: none.
func (r Ranges) Conflict(p netip.Prefix) error {
	if other, overlaps := r.Overlapping(p); overlaps {
		return fmt.Errorf("%s conflicts with %s %s", p, other.Use, other.Prefix)
	}
	return nil
}

// place returns the index of a range, or the index at which to insert it.
func (r Ranges) place(p netip.Prefix) int {
	i, _ := slices.BinarySearchFunc(r, p, func(o Range, p netip.Prefix) int { return o.Compare(p) })
	return i
}

// withNetworks adds the ranges of the cluster that nodes do not route into the overlay.
func (r Ranges) withNetworks(f records.Fabric) Ranges {
	r = slices.Clone(r)
	r.Add("pod CIDR", f.PodCIDRs...)
	r.Add("service CIDR", f.ServiceCIDRs...)
	r.Add("node network", f.NodeNetworks...)
	return r
}

// withoutPods adds the ranges of the cluster in which no pod is. A network that pods and nodes share is not added:
// there the helper of each node protects its node's addresses.
func (r Ranges) withoutPods(f records.Fabric) Ranges {
	r = slices.Clone(r)
	r.Add("service CIDR", f.ServiceCIDRs...)
	r.Add("internal CIDR", f.InternalCIDRs...)
	r.Add("external CIDR", f.ExternalCIDRs...)
	for _, network := range f.NodeNetworks {
		if network.IsSingleIP() || !cidr.Overlaps(network, f.PodCIDRs) {
			r.Add("node network", network)
		}
	}
	return r
}
