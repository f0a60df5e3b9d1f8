package translate

import (
	"fmt"
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
)

// entry maps a range to another one with the same prefix length.
type entry struct {
	from, to netip.Prefix
	kind     Kind
	peer     string
}

// table holds entries sorted by from; these ranges do not overlap. The zero value maps no address.
type table []entry

// newTable rejects overlapping ranges: their addresses would have two translations.
func newTable(entries ...entry) (table, error) {
	for _, e := range entries {
		if err := e.check(); err != nil {
			return nil, err
		}
	}
	t := slices.Clone(entries)
	slices.SortStableFunc(t, func(a, b entry) int { return a.from.Addr().Compare(b.from.Addr()) })
	for i := 1; i < len(t); i++ {
		if a, b := t[i-1], t[i]; a.from.Overlaps(b.from) {
			return nil, fmt.Errorf("%s (%s of %q) overlaps %s (%s of %q)", a.from, a.kind, a.peer, b.from, b.kind, b.peer)
		}
	}
	return t, nil
}

func (e entry) check() error {
	for _, p := range []netip.Prefix{e.from, e.to} {
		if !p.IsValid() || p != p.Masked() || p.Addr().Is4In6() {
			return fmt.Errorf("map %s to %s: want ranges without host bits", e.from, e.to)
		}
	}
	if e.from.Bits() != e.to.Bits() || e.from.Addr().BitLen() != e.to.Addr().BitLen() {
		return fmt.Errorf("map %s to %s: different lengths", e.from, e.to)
	}
	return nil
}

// translate returns the translation of an address, and false if the address is in no range.
func (t table) translate(a netip.Addr) (Address, bool) {
	i, exact := slices.BinarySearchFunc(t, a, func(e entry, a netip.Addr) int { return e.from.Addr().Compare(a) })
	if !exact {
		i-- // the last range that begins before the address
	}
	if i < 0 || !t[i].from.Contains(a) {
		return Address{}, false
	}
	return Address{Given: a, Translated: cidr.Swap(a, t[i].to), Peer: t[i].peer, Kind: t[i].kind}, true
}

// reversed returns the entries of the reverse translation, in the same order.
func reversed(entries []entry) []entry {
	back := slices.Clone(entries)
	for i, e := range back {
		back[i].from, back[i].to = e.to, e.from
	}
	return back
}
