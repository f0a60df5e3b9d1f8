//go:build linux

package helper

import (
	"fmt"
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/records"
)

// apart keeps peerings from sharing what each must have of its own. Two with one overlay id, say, would make a state
// that no kernel can hold, and so stop all of them.
type apart struct {
	gateways map[netip.Addr]string
	overlays map[uint32]string
	ranges   []takenRange // sorted; none overlaps another
}

type takenRange struct {
	prefix  netip.Prefix
	peering string
}

func newApart() *apart {
	return &apart{gateways: make(map[netip.Addr]string), overlays: make(map[uint32]string)}
}

// take notes what a peering has, or refuses it because another one has some of that.
func (a *apart) take(p records.Peering) error {
	for _, g := range p.Gateways {
		if other, taken := a.gateways[g.Address]; taken {
			return fmt.Errorf("gateway address %s is that of peering %q", g.Address, other)
		}
		if other, taken := a.overlays[g.OverlayID]; taken {
			return fmt.Errorf("overlay id %d is that of peering %q", g.OverlayID, other)
		}
	}
	for _, seen := range p.Seen() {
		if other, overlaps := a.overlapping(seen); overlaps {
			return fmt.Errorf("%s conflicts with %s of peering %q", seen, other.prefix, other.peering)
		}
	}
	for _, g := range p.Gateways {
		a.gateways[g.Address], a.overlays[g.OverlayID] = p.Name, p.Name
	}
	all := p.Seen()
	slices.SortFunc(all, func(a, b netip.Prefix) int { return a.Bits() - b.Bits() })
	for _, seen := range all {
		// A peering's own ranges may overlap: the wider one stands for both.
		if _, overlaps := a.overlapping(seen); !overlaps {
			a.ranges = slices.Insert(a.ranges, a.place(seen), takenRange{seen, p.Name})
		}
	}
	return nil
}

// overlapping returns the range that overlaps another one.
func (a *apart) overlapping(p netip.Prefix) (takenRange, bool) {
	i := a.place(p)
	for _, near := range a.ranges[max(i-1, 0):min(i+1, len(a.ranges))] {
		if near.prefix.Overlaps(p) {
			return near, true
		}
	}
	return takenRange{}, false
}

// place is where a range is, or would be.
func (a *apart) place(p netip.Prefix) int {
	i, _ := slices.BinarySearchFunc(a.ranges, p, func(t takenRange, p netip.Prefix) int { return t.prefix.Compare(p) })
	return i
}
