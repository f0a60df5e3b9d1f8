package ipam

import (
	"fmt"
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
)

// Request asks for a free range of some length. Owner, Purpose and Real together are its key: a request whose
// key holds a range is given that one again.
type Request struct {
	Owner   Owner
	Purpose Purpose
	// Real is the peer's own range that the new one stands for; the zero value: it stands for none.
	Real netip.Prefix
	// Preferred is taken if it is free, whether or not a pool has it; the zero value: Real, which is identity.
	Preferred netip.Prefix
	// Bits is the prefix length; 0: that of Preferred or Real.
	Bits int
}

func (q Request) claim() claim { return claim{q.Owner, q.Purpose, q.Real} }

// use names the request in messages.
func (q Request) use() string { return q.reservation(netip.Prefix{}).Use() }

// reservation is the request's answer.
func (q Request) reservation(p netip.Prefix) Reservation {
	return Reservation{Range: p, Owner: q.Owner, Purpose: q.Purpose, Real: q.Real}
}

// Validate refuses what contradicts itself, and what no registry keeps: see Reservation.Validate.
func (q Request) Validate() error {
	_, err := q.normalize()
	return err
}

// normalize fills in what has a default and refuses what contradicts itself. With neither a range nor a length
// there is nothing to go by.
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

// Acquire returns an exclusive range for the request: the one that its key holds already, else the preferred
// one if it is free, else the lowest of the smallest free blocks in the first pool that has room. Without room
// the error wraps ErrNoneFree.
func (r *Registry) Acquire(q Request) (Reservation, error) {
	q, err := q.normalize()
	if err == nil && q.claim().address() {
		err = fmt.Errorf("%s is a single address", q.use())
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

// AcquireAddress returns an address inside a range for a request of purpose GatewayAddress or ExposedHost: the
// one that its key holds already, else the preferred one if it is given and free, else the lowest free one but
// for the range's first and last. The range must be (part of) an internal or external CIDR that is held. Real,
// if given, is the single address that the new one stands for; it is not preferred. Bits is left out.
func (r *Registry) AcquireAddress(q Request, inside netip.Prefix) (netip.Addr, error) {
	all, err := r.AcquireAddresses(q, inside, 1)
	if err != nil {
		return netip.Addr{}, err
	}
	return all[0], nil
}

// AcquireAddresses is AcquireAddress for several: all that the key holds, the lowest first, and then as many more as
// make count.
func (r *Registry) AcquireAddresses(q Request, inside netip.Prefix, count int) (all []netip.Addr, err error) {
	defer func() {
		if err != nil {
			all, err = nil, fmt.Errorf("acquire an address in %s for %s: %w", inside, q.use(), err)
		}
	}()
	if err := r.checkAddress(q, inside); err != nil {
		return nil, err
	}
	for _, held := range slices.SortedFunc(slices.Values(r.claims[q.Owner][q.claim()]), Reservation.Compare) {
		if !cidr.Covers(inside, held.Range) {
			return nil, fmt.Errorf("it holds %s", held.Range.Addr())
		}
		all = append(all, held.Range.Addr())
	}
	for len(all) < count {
		a, err := r.freeAddress(q, inside)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// checkAddress refuses requests for addresses that no range could satisfy.
func (r *Registry) checkAddress(q Request, inside netip.Prefix) error {
	if err := q.claim().validate(); err != nil {
		return err
	}
	if !q.claim().address() {
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

// claimed returns what the request's key holds, the lowest if it is several ranges.
func (r *Registry) claimed(q Request) (Reservation, bool) {
	held := r.claims[q.Owner][q.claim()]
	if len(held) == 0 {
		return Reservation{}, false
	}
	return slices.MinFunc(held, Reservation.Compare), true
}
