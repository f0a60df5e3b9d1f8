package ipam

import (
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
)

// model is a reference implementation of Registry: an unsorted list with linear searches. Both must behave identically.
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

// taken reports whether the wanted reservation conflicts with one of the others.
func (m *model) taken(others []Reservation, want Reservation) bool {
	return slices.ContainsFunc(others, func(h Reservation) bool {
		return h.claim().address() == want.claim().address() && h.Range.Overlaps(want.Range) && (!h.Shared || !want.Shared)
	})
}

// hasPlace reports whether the range that the purpose requires exists around p.
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
	four := true
	if !q.Preferred.IsValid() {
		q.Preferred = q.Real
	}
	if q.Preferred.IsValid() {
		if q.Bits == 0 {
			q.Bits = q.Preferred.Bits()
		}
		if q.Bits != q.Preferred.Bits() || q.reservation(q.Preferred).Validate() != nil {
			return Reservation{}, false
		}
		four = q.Preferred.Addr().Is4()
	} else if q.Bits < 1 || q.Bits > 32 {
		return Reservation{}, false
	}
	if held, ok := m.claimed(q); ok {
		return held, held.Range.Bits() == q.Bits
	}
	if want := q.reservation(q.Preferred); q.Preferred.IsValid() && m.reserve(want) {
		return want, true
	}
	for _, pool := range m.pools {
		if pool.Addr().Is4() != four {
			continue
		}
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
	if q.Purpose != ExposedHost || !m.hasPlace(q.Purpose, inside) {
		return netip.Addr{}, false
	}
	if held, ok := m.claimed(q); ok {
		return held.Range.Addr(), inside.Contains(held.Range.Addr())
	}
	if want := q.reservation(q.Preferred); q.Preferred.IsValid() && inside.Contains(q.Preferred.Addr()) && m.reserve(want) {
		return want.Range.Addr(), true
	}
	for a := inside.Addr(); inside.Contains(a); a = a.Next() {
		if inside.Bits() < a.BitLen()-1 && (a == inside.Addr() || a == last(inside)) {
			continue
		}
		if m.reserve(q.reservation(cidr.Single(a))) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// release removes the reservations for which leaves is true, all of them or none.
func (m *model) release(leaves func(Reservation) bool) bool {
	rest := &model{pools: m.pools, held: slices.DeleteFunc(slices.Clone(m.held), leaves)}
	for _, h := range rest.held {
		if !rest.hasPlace(h.Purpose, h.Range) {
			return false
		}
	}
	m.held = rest.held
	return true
}

func (m *model) setPools(pools []netip.Prefix) bool {
	for i, p := range pools {
		notForHosts := slices.ContainsFunc(unroutable, p.Overlaps)
		if notForHosts || slices.ContainsFunc(pools[:i], p.Overlaps) {
			return false
		}
	}
	m.pools = pools
	return true
}

// ownerOf prefers addresses to ranges, and the smallest of several ranges.
func (m *model) ownerOf(a netip.Addr) (Reservation, bool) {
	a = a.Unmap().WithZone("")
	var around []Reservation
	for _, h := range m.list() {
		if h.Range.Contains(a) {
			around = append(around, h)
		}
	}
	if len(around) == 0 {
		return Reservation{}, false
	}
	return slices.MaxFunc(around, func(x, y Reservation) int {
		if x, y := x.claim().address(), y.claim().address(); x != y {
			if x {
				return 1
			}
			return -1
		}
		return x.Range.Bits() - y.Range.Bits()
	}), true
}

// overlapping returns the ranges that contain p before those inside it.
func (m *model) overlapping(p netip.Prefix) []Reservation {
	var around, inside []Reservation
	for _, h := range m.list() {
		switch {
		case !h.Range.Overlaps(p):
		case h.Range.Bits() < p.Bits():
			around = append(around, h)
		default:
			inside = append(inside, h)
		}
	}
	return append(around, inside...)
}

func (m *model) heldBy(owner Owner) []Reservation {
	return slices.DeleteFunc(m.list(), func(h Reservation) bool { return h.Owner != owner })
}

func (m *model) list() []Reservation {
	sorted := slices.Clone(m.held)
	slices.SortFunc(sorted, Reservation.Compare)
	return sorted
}

// half returns the lower (0) or upper (1) half of a range of more than one address.
func half(p netip.Prefix, upper int) netip.Prefix {
	at, i := p.Addr(), p.Bits()
	if upper == 1 {
		b := at.AsSlice()
		b[i/8] |= 1 << (7 - i%8)
		at, _ = netip.AddrFromSlice(b)
	}
	return netip.PrefixFrom(at, i+1)
}
