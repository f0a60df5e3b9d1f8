package nft

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"go4.org/netipx"

	"liqonet.io/liqonet/internal/cidr"
)

// A set of hosts has, for the kernel, an element for each address. A set with intervals has two for each interval: its
// first address, and, marked as an end, the first address behind it. The interval that reaches 255.255.255.255 has no end.

// hostElements returns the kernel's elements for single addresses.
func hostElements(addresses []netip.Prefix) []nftables.SetElement {
	elements := make([]nftables.SetElement, len(addresses))
	for i, p := range addresses {
		elements[i] = nftables.SetElement{Key: binary.BigEndian.AppendUint32(nil, first(p))}
	}
	return elements
}

// intervalElements returns the kernel's elements for prefixes.
func intervalElements(prefixes []netip.Prefix) []nftables.SetElement {
	elements := make([]nftables.SetElement, 0, 2*len(prefixes))
	for _, p := range prefixes {
		elements = append(elements, nftables.SetElement{Key: binary.BigEndian.AppendUint32(nil, first(p))})
		if end := last(p) + 1; end != 0 {
			elements = append(elements, nftables.SetElement{
				Key: binary.BigEndian.AppendUint32(nil, end), IntervalEnd: true,
			})
		}
	}
	return elements
}

// hosts returns the addresses that are the keys of the kernel's elements.
func hosts(elements []element) []netip.Prefix {
	all := make([]netip.Prefix, len(elements))
	for i, e := range elements {
		all[i] = netip.PrefixFrom(cidr.Address(binary.BigEndian.Uint32(e.key)), addressLen*8)
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	return all
}

// bound is one of the kernel's elements.
type bound struct {
	at  uint32
	end bool
}

// prefixes returns what the kernel's elements, in any order, stand for. Bounds that are not those of prefixes
// are an error.
func prefixes(bounds []bound) ([]netip.Prefix, error) {
	bounds = slices.SortedFunc(slices.Values(bounds), func(a, b bound) int {
		switch {
		case a.at == b.at && a.end && !b.end: // an interval ends before the next begins
			return -1
		case a.at == b.at && b.end && !a.end:
			return 1
		}
		return cmp.Compare(a.at, b.at)
	})
	var out []netip.Prefix
	for i := 0; i < len(bounds); i++ {
		b := bounds[i]
		if b.end {
			if b.at == 0 { // nft(8) marks so that a set begins with a gap
				continue
			}
			return nil, fmt.Errorf("interval end %s without a start", cidr.Address(b.at))
		}
		last := uint32(1<<32 - 1)
		if i+1 < len(bounds) {
			i++
			if !bounds[i].end {
				return nil, fmt.Errorf("interval start %s without an end", cidr.Address(b.at))
			}
			last = bounds[i].at - 1
		}
		r := netipx.IPRangeFrom(cidr.Address(b.at), cidr.Address(last))
		p, ok := r.Prefix()
		if !ok {
			return nil, fmt.Errorf("%s is not a prefix", r)
		}
		out = append(out, p)
	}
	return out, nil
}
