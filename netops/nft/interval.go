package nft

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"

	"liqonet.io/liqonet/internal/cidr"
)

// A set of hosts has, for the kernel, an element for each address. A set with intervals has, for the kernel, two elements for each: its first address, and, marked as an end,
// the first address behind it. The interval that reaches 255.255.255.255 has no end.

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
		if c := cmp.Compare(a.at, b.at); c != 0 {
			return c
		}
		return -compareBool(a.end, b.end) // an interval ends before the next begins
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
		behind := uint64(1) << 32
		if i+1 < len(bounds) {
			i++
			if !bounds[i].end {
				return nil, fmt.Errorf("interval start %s without an end", cidr.Address(b.at))
			}
			behind = uint64(bounds[i].at)
		}
		p, ok := prefix(b.at, behind)
		if !ok {
			return nil, fmt.Errorf("%s-%s is not a prefix", cidr.Address(b.at), cidr.Address(uint32(behind-1)))
		}
		out = append(out, p)
	}
	return out, nil
}

// prefix returns the prefix that begins at an address and ends before another, if there is one.
func prefix(from uint32, behind uint64) (netip.Prefix, bool) {
	for bits := 32; bits >= 0; bits-- {
		p := netip.PrefixFrom(cidr.Address(from), bits)
		if uint64(last(p))+1 == behind && first(p) == from {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
