package ipam

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// ErrNotMapped is what a translation of an address outside every mapping wraps.
var ErrNotMapped = errors.New("not in a mapped range")

// Mapping is a range by its real addresses and by those under which the other side sees it. Both have the same
// length; an address keeps its host bits.
type Mapping struct {
	Real, Seen netip.Prefix
}

// Translator translates addresses of one peering 1:1. The zero value maps nothing.
type Translator struct {
	mappings []Mapping
}

// NewTranslator refuses mappings that would make a translation ambiguous: of different lengths, or
// overlapping on a side. Mappings of different peerings may well overlap, hence a translator for each.
func NewTranslator(mappings ...Mapping) (Translator, error) {
	for i, m := range mappings {
		for _, p := range []netip.Prefix{m.Real, m.Seen} {
			if err := canonical(p); err != nil {
				return Translator{}, fmt.Errorf("map %s to %s: %w", m.Real, m.Seen, err)
			}
		}
		if !sameShape(m.Real, m.Seen) {
			return Translator{}, fmt.Errorf("map %s to %s: different lengths", m.Real, m.Seen)
		}
		for _, o := range mappings[:i] {
			if m.Real.Overlaps(o.Real) || m.Seen.Overlaps(o.Seen) {
				return Translator{}, fmt.Errorf("map %s to %s: overlaps the mapping of %s to %s", m.Real, m.Seen, o.Real, o.Seen)
			}
		}
	}
	return Translator{mappings: slices.Clone(mappings)}, nil
}

// ToSeen returns the address under which the other side sees a real one. The error wraps ErrNotMapped.
func (t Translator) ToSeen(real netip.Addr) (netip.Addr, error) {
	for _, m := range t.mappings {
		if m.Real.Contains(real) {
			return move(real, m.Seen), nil
		}
	}
	return netip.Addr{}, fmt.Errorf("translate real address %s: %w", real, ErrNotMapped)
}

// ToReal returns the real address of one that the other side sees. The error wraps ErrNotMapped.
func (t Translator) ToReal(seen netip.Addr) (netip.Addr, error) {
	for _, m := range t.mappings {
		if m.Seen.Contains(seen) {
			return move(seen, m.Real), nil
		}
	}
	return netip.Addr{}, fmt.Errorf("translate seen address %s: %w", seen, ErrNotMapped)
}

// move gives an address the network bits of a range and leaves its host bits.
func move(a netip.Addr, to netip.Prefix) netip.Addr {
	host, network := a.AsSlice(), to.Addr().AsSlice()
	for i := range host {
		mask := byte(0xff) >> min(8, max(0, to.Bits()-8*i))
		network[i] |= host[i] & mask
	}
	moved, _ := netip.AddrFromSlice(network)
	return moved
}
