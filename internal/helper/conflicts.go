//go:build linux

package helper

import (
	"fmt"
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/records"
)

// conflicts rejects peerings whose gateway addresses, overlay IDs or CIDRs overlap those of another one. Two peerings
// with one overlay ID, for example, would make a state that no kernel can hold, and so block all of them.
type conflicts struct {
	gateways map[netip.Addr]string
	overlays map[uint32]string
	ranges   []takenRange // sorted; no two overlap
}

type takenRange struct {
	prefix  netip.Prefix
	peering string
}

func newConflicts() *conflicts {
	return &conflicts{gateways: make(map[netip.Addr]string), overlays: make(map[uint32]string)}
}

// claim adds a peering, or returns an error if another one has one of its addresses, overlay IDs or CIDRs.
func (c *conflicts) claim(p records.Peering) error {
	for _, g := range p.Gateways {
		if other, taken := c.gateways[g.Address]; taken {
			return fmt.Errorf("gateway address %s is that of peering %q", g.Address, other)
		}
		if other, taken := c.overlays[g.OverlayID]; taken {
			return fmt.Errorf("overlay id %d is that of peering %q", g.OverlayID, other)
		}
	}
	for _, seen := range p.Seen() {
		if other, overlaps := c.overlapping(seen); overlaps {
			return fmt.Errorf("%s conflicts with %s of peering %q", seen, other.prefix, other.peering)
		}
	}
	for _, g := range p.Gateways {
		c.gateways[g.Address], c.overlays[g.OverlayID] = p.Name, p.Name
	}
	all := p.Seen()
	slices.SortFunc(all, func(a, b netip.Prefix) int { return a.Bits() - b.Bits() })
	for _, seen := range all {
		// A peering's own ranges may overlap: only the wider one is stored.
		if _, overlaps := c.overlapping(seen); !overlaps {
			c.ranges = slices.Insert(c.ranges, c.place(seen), takenRange{seen, p.Name})
		}
	}
	return nil
}

// overlapping returns the stored range that overlaps p.
func (c *conflicts) overlapping(p netip.Prefix) (takenRange, bool) {
	i := c.place(p)
	for _, near := range c.ranges[max(i-1, 0):min(i+1, len(c.ranges))] {
		if near.prefix.Overlaps(p) {
			return near, true
		}
	}
	return takenRange{}, false
}

// place returns the index of a range, or the index at which to insert it.
func (c *conflicts) place(p netip.Prefix) int {
	i, _ := slices.BinarySearchFunc(c.ranges, p, func(t takenRange, p netip.Prefix) int { return t.prefix.Compare(p) })
	return i
}
