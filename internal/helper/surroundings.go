//go:build linux

package helper

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

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
func (s *surroundings) record(v nodeView, internal netip.Addr, kernel *kernel.Kernel) (records.Surroundings, error) {
	found, err := s.found.get(ownRanges(v, internal), func(own []netip.Prefix) (records.Surroundings, error) {
		found, err := kernel.Surroundings()
		if err != nil {
			return records.Surroundings{}, fmt.Errorf("look for ranges in use: %w", err)
		}
		return surroundingsOf(found, own), nil
	})
	if err == nil {
		s.last = found
	}
	return s.last, err
}

// ownRanges returns the ranges of the node's own cluster and of its peers, which liqoctl has in the records.
func ownRanges(v nodeView, internal netip.Addr) []netip.Prefix {
	own := v.ranges()
	if internal.IsValid() {
		own = append(own, cidr.Single(internal))
	}
	if v.fabric == nil {
		return own
	}
	own = slices.Concat(own, v.fabric.PodCIDRs, v.fabric.ServiceCIDRs)
	if len(v.Peerings) > 0 { // before, others may use the range that was chosen for it
		own = append(own, v.fabric.InternalCIDR, v.fabric.ExternalCIDR)
	}
	return own
}

// reservedRanges are ranges that no peer gets (RFC 6890): this host, link-local, multicast and reserved addresses.
var reservedRanges = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("224.0.0.0/3"),
}

// surroundingsOf returns the report of the found ranges, without those within a cluster's own. The number of ranges of
// each use is bounded: beyond it, ranges are merged to wider ones.
func surroundingsOf(found kernel.Surroundings, own []netip.Prefix) (s records.Surroundings) {
	own = slices.Concat(own, reservedRanges)
	add := func(use records.Use, ranges []netip.Prefix, widest int) {
		ranges = slices.DeleteFunc(ranges, func(p netip.Prefix) bool { return cidr.Within(p, own) })
		ranges, more := fewer(ranges, records.MaxSurroundings/2, widest)
		s.More = s.More || more
		for _, p := range ranges {
			s.Ranges = append(s.Ranges, records.UsedRange{Range: p, Use: use})
		}
	}
	add(records.UseRoute, slices.Clone(found.Routes), 16)
	add(records.UseAddress, cidr.Singles(found.Addresses), 24)
	slices.SortFunc(s.Ranges, func(a, b records.UsedRange) int {
		return cmp.Or(a.Range.Compare(b.Range), strings.Compare(string(a.Use), string(b.Use)))
	})
	return s
}

// fewer returns at most that many ranges which contain at least the same addresses: narrow ones are widened, by four
// bits a time, but not beyond a length. more is whether some are omitted nevertheless. Ranges that are too wide to be
// avoided stay separate: they would hide the ranges within.
func fewer(ranges []netip.Prefix, most, widest int) (fewest []netip.Prefix, more bool) {
	var wide, rest []netip.Prefix
	for _, p := range ranges {
		if p.Bits() < records.WidestAvoided {
			wide = append(wide, p)
		} else {
			rest = append(rest, p)
		}
	}
	slices.SortFunc(wide, netip.Prefix.Compare)
	wide = slices.Compact(wide)
	for bits := 32; ; bits -= 4 {
		fewest = append(slices.Clone(wide), merged(rest, bits)...)
		if len(fewest) <= most {
			return fewest, false
		}
		if bits-4 < widest {
			return fewest[:most], true
		}
	}
}

// merged returns the fewest ranges with the addresses of others, after longer ones are cut to a length.
func merged(ranges []netip.Prefix, bits int) []netip.Prefix {
	cut := make([]netip.Prefix, len(ranges))
	for i, p := range ranges {
		cut[i] = netip.PrefixFrom(p.Addr(), min(p.Bits(), bits)).Masked()
	}
	var all []netip.Prefix
	for _, p := range cidr.Merged(cut) {
		all = append(all, narrowed(p)...)
	}
	return all
}

// narrowed returns the parts of a range that are not too wide to be avoided.
func narrowed(p netip.Prefix) []netip.Prefix {
	if p.Bits() >= records.WidestAvoided {
		return []netip.Prefix{p}
	}
	lower, upper := cidr.Halves(p)
	return append(narrowed(lower), narrowed(upper)...)
}
