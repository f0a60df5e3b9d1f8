package ipam

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/cidr"
)

// DefaultPools are the private ranges of RFC 1918. They are the pools unless others are set.
func DefaultPools() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"),
		netip.MustParsePrefix("172.16.0.0/12"),
		netip.MustParsePrefix("192.168.0.0/16"),
	}
}

// Registry holds the reservations of one cluster. It is not safe for concurrent use. The zero value is empty and has no
// pools: it accepts reservations of exact ranges, but finds no free ones.
type Registry struct {
	pools     []netip.Prefix
	ranges    space
	addresses space                             // single addresses inside the ranges
	claims    map[Owner]map[claim][]Reservation // has no empty entries
}

// New returns an empty registry with the given pools, in order of preference.
func New(pools ...netip.Prefix) (*Registry, error) {
	r := &Registry{}
	return r, r.SetPools(pools...)
}

// Restore returns a registry with the given reservations, in any order. They must not conflict.
func Restore(pools []netip.Prefix, held []Reservation) (*Registry, error) {
	r, err := New(pools...)
	if err != nil {
		return nil, err
	}
	// Ranges first: a single address requires the range that contains it.
	for _, addresses := range []bool{false, true} {
		for _, h := range held {
			if h.claim().address() != addresses {
				continue
			}
			if err := r.Reserve(h); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// Pools returns the ranges from which free ranges are allocated, in order of preference.
func (r *Registry) Pools() []netip.Prefix { return slices.Clone(r.pools) }

// SetPools replaces the pools. Reservations are not affected. IPv4 ranges are allocated from IPv4 pools only, IPv6
// ranges from IPv6 pools only.
func (r *Registry) SetPools(pools ...netip.Prefix) error {
	for i, p := range pools {
		if err := cmp.Or(canonical(p), routable(p)); err != nil {
			return fmt.Errorf("pool: %w", err)
		}
		if j := slices.IndexFunc(pools[:i], p.Overlaps); j >= 0 {
			return fmt.Errorf("pool %s: overlaps pool %s", p, pools[j])
		}
	}
	r.pools = slices.Clone(pools)
	return nil
}

// Reserve reserves an exact range. For a range that the owner already holds it only updates Shared. Overlap with a
// reservation of another claim, or a second range for the same real one, is a *ConflictError.
func (r *Registry) Reserve(want Reservation) error {
	if err := want.Validate(); err != nil {
		return fmt.Errorf("reserve %s: %w", want.Range, err)
	}
	for _, h := range r.claims[want.Owner][want.claim()] {
		switch {
		case h == want:
			return nil
		case h.Range == want.Range:
			return r.replace(h, want)
		case want.Real.IsValid():
			return &ConflictError{Wanted: want, Held: h}
		}
	}
	return r.add(want)
}

// add inserts a reservation that is not in the registry.
func (r *Registry) add(want Reservation) error {
	if c := want.claim(); c.address() {
		if err := r.requireAround(c, want.Range); err != nil {
			return fmt.Errorf("reserve %s for %s: %w", want.Range.Addr(), want.Use(), err)
		}
	}
	layer := r.layer(want)
	if held, ok := layer.conflict(want); ok {
		return &ConflictError{Wanted: want, Held: held}
	}
	layer.insert(want)
	if r.claims == nil {
		r.claims = map[Owner]map[claim][]Reservation{}
	}
	claims := r.claims[want.Owner]
	if claims == nil {
		claims = map[claim][]Reservation{}
		r.claims[want.Owner] = claims
	}
	claims[want.claim()] = append(claims[want.claim()], want)
	return nil
}

// remove reverts add.
func (r *Registry) remove(held Reservation) {
	r.layer(held).remove(held)
	c, claims := held.claim(), r.claims[held.Owner]
	claims[c] = slices.DeleteFunc(claims[c], func(h Reservation) bool { return h == held })
	if len(claims[c]) == 0 {
		delete(claims, c)
	}
	if len(claims) == 0 {
		delete(r.claims, held.Owner)
	}
}

// replace replaces held by want, which has the same range. On error the registry is unchanged.
func (r *Registry) replace(held, want Reservation) error {
	r.remove(held)
	err := r.add(want)
	if err == nil {
		return nil
	}
	if back := r.add(held); back != nil {
		panic("ipam: a reservation that stood does not fit in its own place: " + back.Error())
	}
	return err
}

func (r *Registry) layer(held Reservation) *space {
	if held.claim().address() {
		return &r.addresses
	}
	return &r.ranges
}

// requireAround rejects single addresses that are in no range of the required purpose.
func (r *Registry) requireAround(c claim, p netip.Prefix) error {
	within := uses[c.purpose].within
	for _, h := range r.ranges.holders(p) {
		if h.Purpose == within {
			return nil
		}
	}
	return fmt.Errorf("%s is in no %s", p, uses[within].label)
}

// List returns all reservations, both ranges and the addresses inside them, sorted.
func (r *Registry) List() []Reservation {
	all := slices.Concat(r.ranges.held, r.addresses.held)
	slices.SortStableFunc(all, Reservation.Compare)
	return all
}

// Held returns the reservations of an owner for any of the purposes, or for all purposes if none is given, sorted. Its
// cost does not depend on the reservations of other owners.
func (r *Registry) Held(owner Owner, purposes ...Purpose) []Reservation {
	var held []Reservation
	for c, hs := range r.claims[owner] {
		if len(purposes) == 0 || slices.Contains(purposes, c.purpose) {
			held = append(held, hs...)
		}
	}
	slices.SortStableFunc(held, Reservation.Compare)
	return held
}

// Overlapping returns the reservations that overlap a range: those that contain it, then those inside it, each sorted.
func (r *Registry) Overlapping(p netip.Prefix) []Reservation {
	if !p.IsValid() {
		return nil
	}
	p = p.Masked()
	var around, inside []Reservation
	for _, s := range []*space{&r.ranges, &r.addresses} {
		for _, h := range s.holders(p) {
			if h.Range != p {
				around = append(around, h)
			}
		}
		inside = append(inside, s.inside(p)...)
	}
	slices.SortStableFunc(around, Reservation.Compare)
	slices.SortStableFunc(inside, Reservation.Compare)
	return append(around, inside...)
}

// OwnerOf returns the most specific reservation of an address: the address itself if it is reserved, else the smallest
// range that contains it.
func (r *Registry) OwnerOf(a netip.Addr) (Reservation, bool) {
	if !a.IsValid() {
		return Reservation{}, false
	}
	holders := r.Overlapping(cidr.Single(a.Unmap()))
	if len(holders) == 0 {
		return Reservation{}, false
	}
	// The last range is the smallest. If several owners share it, the first is returned.
	i := slices.IndexFunc(holders, func(o Reservation) bool { return o.Range == holders[len(holders)-1].Range })
	return holders[i], true
}

// Release removes the reservations of an owner for any of the purposes, or for all purposes if none is given, and
// returns them sorted. If another owner holds addresses inside one of the ranges, nothing is released and the error is
// an *InUseError.
func (r *Registry) Release(owner Owner, purposes ...Purpose) ([]Reservation, error) {
	held := r.Held(owner, purposes...)
	if err := r.release(held); err != nil {
		return nil, err
	}
	return held, nil
}

// ReleaseRange removes one range of an owner and purpose, with the checks of Release. A range that is not reserved is
// no error.
func (r *Registry) ReleaseRange(owner Owner, purpose Purpose, p netip.Prefix) error {
	held := r.Held(owner, purpose)
	return r.release(slices.DeleteFunc(held, func(h Reservation) bool { return h.Range != p }))
}

func (r *Registry) release(held []Reservation) error {
	for _, h := range held {
		if inside, ok := r.orphan(h, held); ok {
			return &InUseError{Range: h, Inside: inside}
		}
	}
	for _, h := range held {
		r.remove(h)
	}
	return nil
}

// orphan returns an address that no range would contain after the reservations in leaving, h among them, are removed.
func (r *Registry) orphan(h Reservation, leaving []Reservation) (Reservation, bool) {
	for _, a := range r.addresses.inside(h.Range) {
		if uses[a.Purpose].within != h.Purpose || slices.Contains(leaving, a) {
			continue
		}
		stays := func(o Reservation) bool { return o.Purpose == h.Purpose && !slices.Contains(leaving, o) }
		if !slices.ContainsFunc(r.ranges.holders(a.Range), stays) {
			return a, true
		}
	}
	return Reservation{}, false
}

// poolsText lists the pools of a family.
func poolsText(pools []netip.Prefix) string {
	if len(pools) == 0 {
		return "none of that family"
	}
	text := make([]string, len(pools))
	for i, p := range pools {
		text[i] = p.String()
	}
	return strings.Join(text, ", ")
}
