package nft

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"go4.org/netipx"

	"liqonet.io/liqonet/internal/cidr"
)

// In the kernel, a set of hosts has one element per address. A set with intervals has two elements per interval: its
// first address, and, flagged as end, the first address after it. An interval up to 255.255.255.255 has no end element.

// encode returns the kernel's elements for prefixes of the set.
func (s Set) encode(prefixes []netip.Prefix) []nftables.SetElement {
	var elements []nftables.SetElement
	for _, p := range prefixes {
		elements = append(elements, nftables.SetElement{Key: binary.BigEndian.AppendUint32(nil, first(p))})
		if end := last(p) + 1; !s.Hosts && end != 0 {
			elements = append(elements, nftables.SetElement{Key: binary.BigEndian.AppendUint32(nil, end), IntervalEnd: true})
		}
	}
	return elements
}

// bound is one of the kernel's elements.
type bound struct {
	at  uint32
	end bool
}

// hosts decodes the kernel's elements to addresses.
func hosts(bounds []bound) []netip.Prefix {
	all := make([]netip.Prefix, len(bounds))
	for i, b := range bounds {
		all[i] = cidr.Single(cidr.Address(b.at))
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	return all
}

// prefixes decodes the kernel's elements, in any order. Bounds that do not form intervals are an error. So is an
// interval that is not a prefix, but the prefixes of which it consists are returned as well.
func prefixes(bounds []bound) (out []netip.Prefix, err error) {
	order := func(b bound) uint64 {
		if b.end { // an interval ends before the next begins
			return uint64(b.at) << 1
		}
		return uint64(b.at)<<1 | 1
	}
	bounds = slices.SortedFunc(slices.Values(bounds), func(a, b bound) int { return cmp.Compare(order(a), order(b)) })
	if len(bounds) > 0 && bounds[0] == (bound{at: 0, end: true}) {
		bounds = bounds[1:] // added by nft(8) to sets that begin with a gap
	}
	for pair := range slices.Chunk(bounds, 2) {
		from, last := cidr.Address(pair[0].at), cidr.Address(math.MaxUint32)
		if pair[0].end {
			return nil, fmt.Errorf("interval end %s without a start", from)
		}
		if len(pair) == 2 {
			if !pair[1].end {
				return nil, fmt.Errorf("interval start %s without an end", from)
			}
			last = cidr.Address(pair[1].at - 1)
		}
		r := netipx.IPRangeFrom(from, last)
		parts := r.Prefixes()
		if len(parts) > 1 {
			err = fmt.Errorf("%s is not a prefix", r)
		}
		out = append(out, parts...)
	}
	return out, err
}
