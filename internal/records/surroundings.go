package records

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/cidr"
)

// Use is the way in which a node uses addresses.
type Use string

// The uses.
const (
	UseRoute   Use = "route"   // the node has a route to them
	UseAddress Use = "address" // they are the node's own
)

// Surroundings are the addresses that a node uses besides those of pods, Services and peers. They must not be allocated
// to peers. The zero value: none.
type Surroundings struct {
	// Ranges has at most MaxSurroundings entries, sorted.
	Ranges []UsedRange `json:"ranges,omitempty"`
	// More is set if entries were omitted.
	More bool `json:"more,omitempty"`
}

// IsZero reports whether the node uses no such addresses.
func (s Surroundings) IsZero() bool { return len(s.Ranges) == 0 && !s.More }

// MaxSurroundings limits the number of ranges in a report.
const MaxSurroundings = 64

// WidestAvoided is the shortest prefix length of a used range that is not allocated to peers. A route for a wider
// range, such as 10.0.0.0/8, does not imply that all of it is in use, and avoiding it would leave no free range.
const WidestAvoided = 12

// UsedRange is a range that a node uses.
type UsedRange struct {
	Range netip.Prefix `json:"range"`
	Use   Use          `json:"use"`
}

func (s Surroundings) validate() error {
	if len(s.Ranges) > MaxSurroundings {
		return fmt.Errorf("%d ranges: want at most %d", len(s.Ranges), MaxSurroundings)
	}
	return each(s.Ranges, func(r UsedRange) error {
		return errors.Join(validateCIDR(r.Range), unless(r.Use == UseRoute || r.Use == UseAddress, "range %s: unknown use %q", r.Range, string(r.Use)))
	})
}

// ReservedRanges are ranges that no peer gets (RFC 6890): this host, link-local, multicast and reserved addresses.
var ReservedRanges = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("224.0.0.0/3"),
}

// SurroundingsOf returns the ranges of routes and of addresses, without those within a cluster's own. The number of
// ranges of each use is bounded: beyond it, ranges are merged to wider ones.
func SurroundingsOf(routes []netip.Prefix, addresses []netip.Addr, own []netip.Prefix) (s Surroundings) {
	own = slices.Concat(own, ReservedRanges)
	add := func(use Use, ranges []netip.Prefix, widest int) {
		ranges = slices.DeleteFunc(ranges, func(p netip.Prefix) bool { return cidr.Within(p, own) })
		ranges, more := fewer(ranges, MaxSurroundings/2, widest)
		s.More = s.More || more
		for _, p := range ranges {
			s.Ranges = append(s.Ranges, UsedRange{Range: p, Use: use})
		}
	}
	add(UseRoute, slices.Clone(routes), 16)
	add(UseAddress, cidr.Singles(addresses), 24)
	slices.SortStableFunc(s.Ranges, func(a, b UsedRange) int {
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
		if p.Bits() < WidestAvoided {
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
	if p.Bits() >= WidestAvoided {
		return []netip.Prefix{p}
	}
	lower, upper := cidr.Halves(p)
	return append(narrowed(lower), narrowed(upper)...)
}
