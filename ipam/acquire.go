package ipam

import (
	"fmt"
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
)

// Request asks for a free range of a given length. Owner, Purpose and Real together are its key. A request whose key
// already holds a range returns that range.
type Request struct {
	Owner   Owner
	Purpose Purpose
	// Real is the peer's own range that is remapped to the new one. The zero value: no range is remapped.
	Real netip.Prefix
	// Preferred is used if it is free, even outside the pools. The zero value: Real, so that the range is not remapped.
	Preferred netip.Prefix
	// Bits is the prefix length. 0: the length of Preferred or Real.
	Bits int
}

func (q Request) claim() claim { return claim{q.Owner, q.Purpose, q.Real} }

// use describes the request in messages.
func (q Request) use() string { return q.reservation(netip.Prefix{}).Use() }

// reservation returns the reservation of range p that satisfies the request.
func (q Request) reservation(p netip.Prefix) Reservation {
	return Reservation{Range: p, Owner: q.Owner, Purpose: q.Purpose, Real: q.Real}
}

// Validate rejects contradictory requests and requests that no registry accepts; see Reservation.Validate.
func (q Request) Validate() error {
	_, err := q.normalize()
	return err
}

// normalize sets the defaults and rejects contradictory requests. Without a range, the length is required.
func (q Request) normalize() (Request, error) {
	if err := q.claim().validate(); err != nil {
		return q, err
	}
	if !q.Preferred.IsValid() {
		q.Preferred = q.Real
	}
	if q.Preferred.IsValid() {
		if err := q.reservation(q.Preferred).Validate(); err != nil {
			return q, err
		}
		if q.Bits == 0 {
			q.Bits = q.Preferred.Bits()
		}
		if q.Bits != q.Preferred.Bits() {
			return q, fmt.Errorf("%s is not a /%d", q.Preferred, q.Bits)
		}
		return q, nil
	}
	if q.Bits < 1 || q.Bits > 32 {
		return q, fmt.Errorf("prefix length %d is not in 1 to 32", q.Bits)
	}
	return q, nil
}

// Acquire returns an exclusive range for the request: the range that the key already holds, else the preferred range if
// it is free, else the lowest of the smallest free blocks in the first pool that has room. If no pool has room, the
// error wraps ErrNoneFree.
func (r *Registry) Acquire(q Request) (Reservation, error) {
	q, err := q.normalize()
	if err == nil && q.claim().address() {
		err = fmt.Errorf("%s is inside a range", q.use())
	}
	if err != nil {
		return Reservation{}, fmt.Errorf("acquire a range for %s %s: %w", string(q.Owner), string(q.Purpose), err)
	}
	if held, ok := r.claimed(q); ok {
		if held.Range.Bits() != q.Bits {
			return Reservation{}, fmt.Errorf("acquire a /%d for %s: it holds %s", q.Bits, q.use(), held.Range)
		}
		return held, nil
	}
	if q.Preferred.IsValid() {
		if want := q.reservation(q.Preferred); r.add(want) == nil {
			return want, nil
		}
	}
	v4 := !q.Preferred.IsValid() || q.Preferred.Addr().Is4()
	pools := slices.DeleteFunc(r.Pools(), func(p netip.Prefix) bool { return p.Addr().Is4() != v4 })
	for _, pool := range pools {
		if p, ok := r.ranges.fit(pool, q.Bits); ok {
			return q.reservation(p), r.add(q.reservation(p))
		}
	}
	return Reservation{}, fmt.Errorf("acquire a /%d for %s: %w (pools: %s)", q.Bits, q.use(), ErrNoneFree, poolsText(pools))
}

// AcquireAddress returns an address inside a range, for a request of purpose ExposedHost: the address that the key
// already holds, else the preferred address if it is set and free, else the lowest free address, without the first and
// the last of the range. The range must be an external CIDR in the registry, or part of one. Real, if set, is the
// single address that is translated to the new one; it is not preferred. Bits is ignored.
func (r *Registry) AcquireAddress(q Request, inside netip.Prefix) (a netip.Addr, err error) {
	defer func() {
		if err != nil {
			a, err = netip.Addr{}, fmt.Errorf("acquire an address in %s for %s: %w", inside, q.use(), err)
		}
	}()
	if err := r.checkAddress(q, inside); err != nil {
		return a, err
	}
	held, ok := r.claimed(q)
	switch {
	case !ok:
		return r.freeAddress(q, inside)
	case !cidr.Covers(inside, held.Range):
		return a, fmt.Errorf("it holds %s", held.Range.Addr())
	}
	return held.Range.Addr(), nil
}

// checkAddress rejects requests that no range can satisfy.
func (r *Registry) checkAddress(q Request, inside netip.Prefix) error {
	if err := q.claim().validate(); err != nil {
		return err
	}
	if q.Purpose != ExposedHost {
		return fmt.Errorf("%s is a range", q.use())
	}
	if err := canonical(inside); err != nil {
		return err
	}
	return r.requireAround(q.claim(), inside)
}

// freeAddress reserves the preferred address, or the lowest free one.
func (r *Registry) freeAddress(q Request, inside netip.Prefix) (netip.Addr, error) {
	if q.Preferred.IsValid() && cidr.Covers(inside, q.Preferred) && r.Reserve(q.reservation(q.Preferred)) == nil {
		return q.Preferred.Addr(), nil
	}
	from, to := inside.Addr(), last(inside)
	if inside.Bits() < from.BitLen()-1 {
		from, to = from.Next(), to.Prev()
	}
	a, ok := r.addresses.lowest(inside, from)
	if !ok || to.Less(a) {
		return netip.Addr{}, ErrNoneFree
	}
	return a, r.Reserve(q.reservation(cidr.Single(a)))
}

// claimed returns the reservation that the request's key holds, the lowest of several.
func (r *Registry) claimed(q Request) (Reservation, bool) {
	held := r.claims[q.Owner][q.claim()]
	if len(held) == 0 {
		return Reservation{}, false
	}
	return slices.MinFunc(held, Reservation.Compare), true
}
