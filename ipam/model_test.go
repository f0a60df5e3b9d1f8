package ipam

import (
	"net/netip"
	"slices"
)

// model is a registry written for plainness: a list, searched from end to end. What the real one does must be
// what this one does.
type model struct {
	pools []netip.Prefix
	held  []Reservation
}

func (m *model) reserve(want Reservation) bool {
	i := slices.IndexFunc(m.held, func(h Reservation) bool {
		return h.claim() == want.claim() && (h.Range == want.Range || want.Real.IsValid())
	})
	others := m.held
	if i >= 0 {
		if m.held[i].Range != want.Range {
			return false
		}
		others = slices.Delete(slices.Clone(m.held), i, i+1)
	}
	if want.Validate() != nil || m.taken(others, want) || !m.hasPlace(want.Purpose, want.Range) {
		return false
	}
	m.held = append(slices.Clone(others), want)
	return true
}

// taken reports whether the wanted reservation collides with one of the others.
func (m *model) taken(others []Reservation, want Reservation) bool {
	return slices.ContainsFunc(others, func(h Reservation) bool {
		return h.claim().address() == want.claim().address() && h.Range.Overlaps(want.Range) && (!h.Shared || !want.Shared)
	})
}

// hasPlace reports whether there is the range around that a purpose calls for.
func (m *model) hasPlace(purpose Purpose, p netip.Prefix) bool {
	within := uses[purpose].within
	return within == "" || slices.ContainsFunc(m.held, func(h Reservation) bool {
		return h.Purpose == within && h.Range.Contains(p.Addr()) && h.Range.Contains(last(p))
	})
}

func (m *model) claimed(q Request) (Reservation, bool) {
	var found []Reservation
	for _, h := range m.held {
		if h.claim() == q.claim() {
			found = append(found, h)
		}
	}
	slices.SortFunc(found, Reservation.Compare)
	if len(found) == 0 {
		return Reservation{}, false
	}
	return found[0], true
}

func (m *model) acquire(q Request) (Reservation, bool) {
	if held, ok := m.claimed(q); ok {
		return held, held.Range.Bits() == q.Bits
	}
	if want := q.reservation(q.Preferred); q.Preferred.IsValid() && m.reserve(want) {
		return want, true
	}
	for _, pool := range m.pools {
		var best netip.Prefix
		for _, block := range m.freeBlocks(pool) {
			if block.Bits() <= q.Bits && (!best.IsValid() || block.Bits() > best.Bits()) {
				best = block
			}
		}
		if best.IsValid() {
			want := q.reservation(netip.PrefixFrom(best.Addr(), q.Bits))
			return want, m.reserve(want)
		}
	}
	return Reservation{}, false
}

// freeBlocks returns the maximal aligned blocks of p that no range overlaps, the lowest first.
func (m *model) freeBlocks(p netip.Prefix) []netip.Prefix {
	overlapped := false
	for _, h := range m.held {
		if h.claim().address() || !h.Range.Overlaps(p) {
			continue
		}
		if h.Range.Bits() <= p.Bits() {
			return nil
		}
		overlapped = true
	}
	if !overlapped {
		return []netip.Prefix{p}
	}
	return append(m.freeBlocks(half(p, 0)), m.freeBlocks(half(p, 1))...)
}

func (m *model) acquireAddress(q Request, inside netip.Prefix) (netip.Addr, bool) {
	if !m.hasPlace(q.Purpose, inside) {
		return netip.Addr{}, false
	}
	if held, ok := m.claimed(q); ok {
		return held.Range.Addr(), inside.Contains(held.Range.Addr())
	}
	for a := inside.Addr(); inside.Contains(a); a = a.Next() {
		if inside.Bits() < 31 && (a == inside.Addr() || a == last(inside)) {
			continue
		}
		if m.reserve(q.reservation(single(a))) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

func (m *model) release(owner Owner, purposes ...Purpose) bool {
	leaves := func(h Reservation) bool {
		return h.Owner == owner && (len(purposes) == 0 || slices.Contains(purposes, h.Purpose))
	}
	rest := &model{pools: m.pools, held: slices.DeleteFunc(slices.Clone(m.held), leaves)}
	for _, h := range rest.held {
		if !rest.hasPlace(h.Purpose, h.Range) {
			return false
		}
	}
	m.held = rest.held
	return true
}

func (m *model) list() []Reservation {
	sorted := slices.Clone(m.held)
	slices.SortFunc(sorted, Reservation.Compare)
	return sorted
}
