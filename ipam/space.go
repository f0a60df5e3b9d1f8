package ipam

import (
	"net/netip"
	"slices"

	"go4.org/netipx"

	"liqonet.io/liqonet/internal/cidr"
)

// space is a sorted set of reservations. The zero value is empty.
type space struct {
	held []Reservation
}

func (s *space) insert(r Reservation) {
	i, _ := slices.BinarySearchFunc(s.held, r, Reservation.Compare)
	s.held = slices.Insert(s.held, i, r)
}

func (s *space) remove(r Reservation) {
	if i, ok := slices.BinarySearchFunc(s.held, r, Reservation.Compare); ok {
		s.held = slices.Delete(s.held, i, i+1)
	}
}

// conflict returns a reservation that want must not overlap: the widest that contains it, else the lowest inside it.
func (s *space) conflict(want Reservation) (Reservation, bool) {
	for _, overlapping := range [][]Reservation{s.holders(want.Range), s.inside(want.Range)} {
		for _, r := range overlapping {
			if !want.Shared || !r.Shared {
				return r, true
			}
		}
	}
	return Reservation{}, false
}

// holders returns the reservations that contain a range, the widest first.
func (s *space) holders(p netip.Prefix) []Reservation {
	var found []Reservation
	for bits := range p.Bits() + 1 {
		around := netip.PrefixFrom(p.Addr(), bits).Masked()
		i, end := s.from(around), s.from(around)
		for end < len(s.held) && s.held[end].Range == around {
			end++
		}
		found = append(found, s.held[i:end]...)
	}
	return found
}

// inside returns the reservations inside p, in order. They are consecutive, because two CIDRs are either disjoint or
// one contains the other.
func (s *space) inside(p netip.Prefix) []Reservation {
	i := s.from(p)
	end := i
	for end < len(s.held) && cidr.Covers(p, s.held[end].Range) {
		end++
	}
	return slices.Clone(s.held[i:end])
}

// from returns the index of the first reservation of range p, or the index at which it would be inserted.
func (s *space) from(p netip.Prefix) int {
	i, _ := slices.BinarySearchFunc(s.held, p, func(r Reservation, p netip.Prefix) int { return r.Range.Compare(p) })
	return i
}

// free returns the addresses of p that are not reserved.
func (s *space) free(p netip.Prefix) *netipx.IPSet {
	var b netipx.IPSetBuilder
	b.AddPrefix(p)
	for _, held := range [][]Reservation{s.holders(p), s.inside(p)} {
		for _, r := range held {
			b.RemovePrefix(r.Range)
		}
	}
	free, err := b.IPSet()
	if err != nil {
		panic("ipam: " + err.Error()) // unreachable: Validate rejects invalid ranges
	}
	return free
}

// fit returns a free range of the given length in pool: the lowest of the smallest free blocks that have room, to keep
// large blocks whole.
func (s *space) fit(pool netip.Prefix, length int) (netip.Prefix, bool) {
	p, _, ok := s.free(pool).RemoveFreePrefix(uint8(length))
	return p, ok
}

// lowest returns the lowest free address of p that is not below from.
func (s *space) lowest(p netip.Prefix, from netip.Addr) (netip.Addr, bool) {
	for _, r := range s.free(p).Ranges() {
		if r.To().Less(from) {
			continue
		}
		if r.From().Less(from) {
			return from, true
		}
		return r.From(), true
	}
	return netip.Addr{}, false
}
