package ipam

import (
	"fmt"
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
)

// operations decodes bytes to a sequence of operations, in an address space so small that they often conflict.
type operations struct{ bytes []byte }

func (o *operations) next() int {
	if len(o.bytes) == 0 {
		return 0
	}
	b := o.bytes[0]
	o.bytes = o.bytes[1:]
	return int(b)
}

func pick[T any](o *operations, from ...T) T { return from[o.next()%len(from)] }

// one returns true once in n times.
func (o *operations) one(n int) bool { return o.next()%n == n-1 }

// address returns one of 8192 addresses of a family, twice the size of its first pool: in 10.0.0.0/19 or, in one of
// four cases, in fd00::/115.
func (o *operations) address() netip.Addr {
	six := o.one(4)
	high, low := byte(o.next()%32), byte(o.next())
	if six {
		return netip.AddrFrom16([16]byte{0: 0xfd, 14: high, 15: low})
	}
	return netip.AddrFrom4([4]byte{10, 0, high, low})
}

// sized returns the range of that many bits around an address. The bits are those of an IPv4 prefix: 28 is 16 addresses
// in either family, and 0 is the whole address space.
func sized(a netip.Addr, bits int) netip.Prefix {
	if a.Is6() && bits > 0 {
		bits += 128 - 32
	}
	p, err := a.Prefix(bits)
	if err != nil {
		panic(err)
	}
	return p
}

// prefix returns a range of up to 4096 addresses, or in one of 16 cases a larger one than any pool.
func (o *operations) prefix() netip.Prefix {
	if o.one(16) {
		return sized(o.address(), pick(o, 0, 1, 8, 12, 16, 18, 19))
	}
	return o.narrow()
}

func (o *operations) narrow() netip.Prefix {
	return sized(o.address(), pick(o, 20, 22, 23, 24, 24, 26, 28, 30, 31, 32))
}

// real returns a real range for p: none, p itself, another range, or one of a length or family that does not fit.
func (o *operations) real(p netip.Prefix) netip.Prefix {
	switch o.next() % 8 {
	case 5:
		return p
	case 6:
		other, _ := o.address().Prefix(p.Bits()) // the zero value if p's length is not valid in its family
		return other
	case 7:
		return o.prefix()
	}
	return netip.Prefix{}
}

func (o *operations) owner() Owner {
	return pick(o, Cluster, Peering("a"), Peering("b"), Peering("c"), User("d"))
}

func (o *operations) rangePurpose() Purpose {
	return pick(o, PodCIDR, NodeNetwork, ExternalCIDR, InternalCIDR, InternalCIDR, PeerPods, PeerUnderlay)
}

func (o *operations) addressPurpose() Purpose { return pick(o, Gateways, ExposedHost) }

// held returns a reservation of the model, or one that does not exist.
func (o *operations) held(m *model) Reservation {
	if held := m.list(); len(held) > 0 && !o.one(4) {
		return pick(o, held...)
	}
	return Reservation{Range: o.prefix(), Owner: o.owner(), Purpose: o.rangePurpose()}
}

// step applies one operation to both and describes the difference of the results, if there is one.
func (o *operations) step(r *Registry, m *model) (done, difference string) {
	operation := pick(o,
		(*operations).reserve, (*operations).reserve, (*operations).reserve, (*operations).reserveAddress,
		(*operations).acquire, (*operations).acquire, (*operations).acquireAddress, (*operations).release,
		(*operations).releaseRange, (*operations).setPools, (*operations).query)
	return operation(o, r, m)
}

func (o *operations) reserve(r *Registry, m *model) (done, difference string) {
	want := Reservation{Range: o.prefix(), Owner: o.owner(), Purpose: o.rangePurpose(), Shared: o.next()%2 == 0}
	want.Real = o.real(want.Range)
	err, ok := r.Reserve(want), m.reserve(want)
	return fmt.Sprintf("reserve %+v", want), differ(err, ok, nil, nil)
}

func (o *operations) reserveAddress(r *Registry, m *model) (done, difference string) {
	want := Reservation{Range: pick(o, cidr.Single(o.address()), sized(o.address(), 29)), Owner: o.owner(), Purpose: o.addressPurpose()}
	want.Real = o.real(want.Range)
	err, ok := r.Reserve(want), m.reserve(want)
	return fmt.Sprintf("reserve %+v", want), differ(err, ok, nil, nil)
}

// acquire requests a length, a peer's range, a preferred range, or a combination of these that may be invalid.
func (o *operations) acquire(r *Registry, m *model) (done, difference string) {
	q := Request{Owner: o.owner(), Purpose: o.rangePurpose(), Bits: pick(o, 22, 23, 24, 28, 32, 0, 19, 33)}
	switch o.next() % 8 {
	case 1, 2:
		q.Real, q.Bits = o.prefix(), 0
	case 3, 4: // another of the same length
		q.Real, q.Bits = o.prefix(), 0
		q.Preferred, _ = o.address().Prefix(q.Real.Bits())
	case 5:
		q.Preferred = o.prefix()
		q.Bits = q.Preferred.Bits()
	case 6:
		q.Real, q.Preferred = o.prefix(), o.prefix()
	}
	got, err := r.Acquire(q)
	want, ok := m.acquire(q)
	return fmt.Sprintf("acquire %+v", q), differ(err, ok, got, want)
}

func (o *operations) acquireAddress(r *Registry, m *model) (done, difference string) {
	q, inside := Request{Owner: o.owner(), Purpose: o.addressPurpose()}, o.narrow()
	switch o.next() % 4 {
	case 1:
		q.Real = cidr.Single(o.address())
	case 2:
		q.Preferred = cidr.Single(o.address())
	case 3:
		q.Preferred = pick(o, cidr.Single(inside.Addr()), cidr.Single(last(inside)), inside)
	}
	got, err := r.AcquireAddress(q, inside)
	want, ok := m.acquireAddress(q, inside)
	return fmt.Sprintf("acquire address %+v in %s", q, inside), differ(err, ok, got, want)
}

func (o *operations) release(r *Registry, m *model) (done, difference string) {
	owner, purposes := o.owner(), []Purpose{o.rangePurpose(), o.addressPurpose()}[:o.next()%3]
	before := m.list()
	released, err := r.Release(owner, purposes...)
	ok := m.release(func(h Reservation) bool {
		return h.Owner == owner && (len(purposes) == 0 || slices.Contains(purposes, h.Purpose))
	})
	gone := slices.DeleteFunc(before, func(h Reservation) bool { return slices.Contains(m.held, h) })
	return fmt.Sprintf("release %s %s", owner, purposes), differ(err, ok, fmt.Sprint(released), fmt.Sprint(gone))
}

func (o *operations) releaseRange(r *Registry, m *model) (done, difference string) {
	one := o.held(m)
	err := r.ReleaseRange(one.Owner, one.Purpose, one.Range)
	ok := m.release(func(h Reservation) bool {
		return h.Owner == one.Owner && h.Purpose == one.Purpose && h.Range == one.Range
	})
	return fmt.Sprintf("release range %+v", one), differ(err, ok, nil, nil)
}

// setPools sets one to three pools, which may overlap or be unroutable.
func (o *operations) setPools(r *Registry, m *model) (done, difference string) {
	pools := make([]netip.Prefix, 1+o.next()%3)
	for i := range pools {
		pools[i] = pick(o, sized(o.address(), 18), sized(o.address(), 21), o.prefix(), prefix("fd02::/16"))
	}
	err, ok := r.SetPools(pools...), m.setPools(pools)
	return fmt.Sprintf("set pools %s", pools), differ(err, ok, fmt.Sprint(r.Pools()), fmt.Sprint(m.pools))
}

// query compares the methods that change nothing.
func (o *operations) query(r *Registry, m *model) (done, difference string) {
	a := pick(o, o.address(), o.held(m).Range.Addr())
	form := pick(o, a, a, netip.AddrFrom16(a.As16()), a.WithZone("eth0"), netip.Addr{})
	got, held := r.OwnerOf(form)
	want, ok := m.ownerOf(form)
	if got != want || held != ok {
		return "owner of " + form.String(), fmt.Sprintf("%+v, %t, but the model says %+v, %t", got, held, want, ok)
	}
	p := o.prefix()
	if got, want := fmt.Sprint(r.Overlapping(p)), fmt.Sprint(m.overlapping(p)); got != want {
		return "overlapping " + p.String(), fmt.Sprintf("%s, but the model says %s", got, want)
	}
	owner := o.owner()
	return "held by " + string(owner), differ(nil, true, fmt.Sprint(r.Held(owner)), fmt.Sprint(m.heldBy(owner)))
}

// differ compares the results of the registry and the model.
func differ(err error, ok bool, got, want any) string {
	if (err == nil) != ok {
		return fmt.Sprintf("error %v, but the model's success is %t", err, ok)
	}
	if err == nil && got != want {
		return fmt.Sprintf("%v, but the model says %v", got, want)
	}
	return ""
}
