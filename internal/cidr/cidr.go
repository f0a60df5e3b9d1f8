// Package cidr is the arithmetic of addresses and of ranges in CIDR notation that the other packages share. Where
// nothing else is said, it serves IPv4 and IPv6. It is pure, and imports no other package of this module.
package cidr

import (
	"net/netip"
	"slices"

	"go4.org/netipx"
)

// Single is the range of one address.
func Single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// Singles are the ranges of single addresses.
func Singles(addresses []netip.Addr) []netip.Prefix {
	all := make([]netip.Prefix, len(addresses))
	for i, a := range addresses {
		all[i] = Single(a)
	}
	return all
}

// Covers reports whether all of inner lies in outer.
func Covers(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

// Within reports whether all of a range lies in one of others.
func Within(p netip.Prefix, others []netip.Prefix) bool {
	return slices.ContainsFunc(others, func(o netip.Prefix) bool { return Covers(o, p) })
}

// private are the ranges in which networks have addresses of their own choice (RFC 1918, RFC 6598).
var private = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("100.64.0.0/10"),
}

// Private reports whether all of an IPv4 range is private.
func Private(p netip.Prefix) bool { return Within(p, private) }

// Contains reports whether an address lies in one of the ranges.
func Contains(ranges []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Overlaps reports whether a range overlaps one of others.
func Overlaps(p netip.Prefix, others []netip.Prefix) bool {
	return slices.ContainsFunc(others, p.Overlaps)
}

// Merged returns the same addresses as the fewest ranges, sorted.
func Merged(ranges []netip.Prefix) []netip.Prefix {
	var b netipx.IPSetBuilder
	for _, p := range ranges {
		b.AddPrefix(p)
	}
	set, err := b.IPSet()
	if err != nil {
		return nil // there is none for ranges that are valid
	}
	return set.Prefixes()
}

// Outermost returns the ranges sorted, without host bits and without those that others cover. Neighbours are not
// merged.
func Outermost(ranges []netip.Prefix) []netip.Prefix {
	all := make([]netip.Prefix, len(ranges))
	for i, p := range ranges {
		all[i] = p.Masked()
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	var out []netip.Prefix
	for _, p := range all {
		if n := len(out); n == 0 || !out[n-1].Contains(p.Addr()) {
			out = append(out, p)
		}
	}
	return out
}

// Halves cuts a range in two. It must have more than one address.
func Halves(p netip.Prefix) (lower, upper netip.Prefix) {
	p = p.Masked()
	b := p.Addr().AsSlice()
	b[p.Bits()/8] |= 0x80 >> (p.Bits() % 8)
	second, _ := netip.AddrFromSlice(b)
	return netip.PrefixFrom(p.Addr(), p.Bits()+1), netip.PrefixFrom(second, p.Bits()+1)
}

// Lower is the first half of a range.
func Lower(p netip.Prefix) netip.Prefix { return netip.PrefixFrom(p.Masked().Addr(), p.Bits()+1) }

// Swap gives an address the network bits of a range of its family and leaves its host bits: translation 1:1.
func Swap(a netip.Addr, into netip.Prefix) netip.Addr {
	host, network := a.AsSlice(), into.Masked().Addr().AsSlice()
	for i := range network {
		network[i] |= host[i] & (byte(0xff) >> min(8, max(0, into.Bits()-8*i)))
	}
	swapped, _ := netip.AddrFromSlice(network)
	return swapped
}

// Number is an IPv4 address as a number.
func Number(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// Address is the IPv4 address of a number.
func Address(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// Offset is the distance of an IPv4 address from the beginning of its range.
func Offset(p netip.Prefix, a netip.Addr) uint32 { return Number(a) - Number(p.Masked().Addr()) }
