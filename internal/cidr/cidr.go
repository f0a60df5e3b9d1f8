// Package cidr has the arithmetic of addresses and CIDRs that the other packages share. Functions serve IPv4 and IPv6
// unless documented otherwise. The package is pure and imports no other package of this module.
package cidr

import (
	"net/netip"
	"slices"

	"go4.org/netipx"
)

// Single returns the range of one address.
func Single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// Singles returns the ranges of single addresses.
func Singles(addresses []netip.Addr) []netip.Prefix {
	all := make([]netip.Prefix, len(addresses))
	for i, a := range addresses {
		all[i] = Single(a)
	}
	return all
}

// Covers reports whether outer contains all of inner.
func Covers(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

// Within reports whether one of the other ranges contains all of p.
func Within(p netip.Prefix, others []netip.Prefix) bool {
	return slices.ContainsFunc(others, func(o netip.Prefix) bool { return Covers(o, p) })
}

// private are the ranges of private networks (RFC 1918) and of carrier-grade NAT (RFC 6598).
var private = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("100.64.0.0/10"),
}

// Without returns the parts of a range that are in none of the others, sorted.
func Without(p netip.Prefix, others []netip.Prefix) []netip.Prefix {
	var b netipx.IPSetBuilder
	b.AddPrefix(p)
	for _, other := range others {
		if other.IsValid() {
			b.RemovePrefix(other)
		}
	}
	left, err := b.IPSet()
	if err != nil {
		return nil // unreachable for valid ranges
	}
	return left.Prefixes()
}

// Private reports whether all of an IPv4 range is private.
func Private(p netip.Prefix) bool { return Within(p, private) }

// Public reports whether an address is reachable from the internet: it is in none of the private ranges (Private), and
// neither link-local nor of this host.
func Public(a netip.Addr) bool {
	return !Private(Single(a)) && !a.IsPrivate() && !a.IsLinkLocalUnicast() && !a.IsLoopback()
}

// Contains reports whether one of the ranges contains the address.
func Contains(ranges []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Overlaps reports whether a range overlaps one of the others.
func Overlaps(p netip.Prefix, others []netip.Prefix) bool {
	return slices.ContainsFunc(others, p.Overlaps)
}

// Merged returns the smallest set of ranges with the same addresses, sorted.
func Merged(ranges []netip.Prefix) []netip.Prefix {
	var b netipx.IPSetBuilder
	for _, p := range ranges {
		b.AddPrefix(p)
	}
	set, err := b.IPSet()
	if err != nil {
		return nil // unreachable for valid ranges
	}
	return set.Prefixes()
}

// Outermost returns the ranges sorted, without host bits, and without ranges that another one covers. Adjacent ranges
// are not merged.
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

// Halves splits a range in two. The range must have more than one address.
func Halves(p netip.Prefix) (lower, upper netip.Prefix) {
	p = p.Masked()
	b := p.Addr().AsSlice()
	b[p.Bits()/8] |= 0x80 >> (p.Bits() % 8)
	second, _ := netip.AddrFromSlice(b)
	return netip.PrefixFrom(p.Addr(), p.Bits()+1), netip.PrefixFrom(second, p.Bits()+1)
}

// Lower returns the lower half of a range. That of a single address is not valid.
func Lower(p netip.Prefix) netip.Prefix { return netip.PrefixFrom(p.Masked().Addr(), p.Bits()+1) }

// Swap replaces the network bits of an address by those of a range of its family and keeps the host bits: 1:1
// translation.
func Swap(a netip.Addr, into netip.Prefix) netip.Addr {
	host, network := a.AsSlice(), into.Masked().Addr().AsSlice()
	for i := range network {
		network[i] |= host[i] & (byte(0xff) >> min(8, max(0, into.Bits()-8*i)))
	}
	swapped, _ := netip.AddrFromSlice(network)
	return swapped
}

// Number returns an IPv4 address as a number.
func Number(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// Address returns the IPv4 address with that number.
func Address(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// Offset returns the distance of an IPv4 address from the first address of its range.
func Offset(p netip.Prefix, a netip.Addr) uint32 { return Number(a) - Number(p.Masked().Addr()) }

// Nth returns the address at a distance from the first one of an IPv4 range, and false if the range has no such
// address.
func Nth(p netip.Prefix, n uint32) (netip.Addr, bool) {
	if !p.IsValid() || !p.Addr().Is4() || uint64(n) >= 1<<(32-p.Bits()) {
		return netip.Addr{}, false
	}
	return Address(Number(p.Masked().Addr()) + n), true
}
