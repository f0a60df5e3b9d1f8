package ipam

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// comparePrefixes lets cmp look into package netip.
var comparePrefixes = cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })

// operations makes a sequence of operations of bytes, a few a step, in a space so small that they often meet.
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

// prefix is a range in 10.0.0.0/19, twice the first pool, of up to 4096 addresses.
func (o *operations) prefix() netip.Prefix {
	a := netip.AddrFrom4([4]byte{10, 0, byte(o.next() % 32), byte(o.next())})
	p, err := a.Prefix(pick(o, 20, 22, 23, 24, 24, 26, 28, 30, 31, 32))
	if err != nil {
		panic(err)
	}
	return p
}

func (o *operations) owner() Owner { return pick(o, Cluster, Peering("a"), Peering("b"), Peering("c")) }

func (o *operations) rangePurpose() Purpose {
	return pick(o, PodCIDR, NodeNetwork, ExternalCIDR, InternalCIDR, InternalCIDR, PeerPods, PeerUnderlay)
}

func (o *operations) addressPurpose() Purpose { return pick(o, GatewayAddress, ExposedHost) }

// step does one operation on both and describes the difference of the answers, if there is one.
func (o *operations) step(r *Registry, m *model) (done, difference string) {
	switch o.next() % 8 {
	case 0, 1, 2:
		want := Reservation{Range: o.prefix(), Owner: o.owner(), Purpose: o.rangePurpose(), Shared: o.next()%2 == 0}
		if o.next()%4 == 0 {
			want.Real = netip.PrefixFrom(want.Range.Addr(), want.Range.Bits())
		}
		err, ok := r.Reserve(want), m.reserve(want)
		return fmt.Sprintf("reserve %+v", want), differ(err, ok, nil, nil)
	case 3:
		want := Reservation{Range: single(o.prefix().Addr()), Owner: o.owner(), Purpose: o.addressPurpose()}
		err, ok := r.Reserve(want), m.reserve(want)
		return fmt.Sprintf("reserve %+v", want), differ(err, ok, nil, nil)
	case 4, 5:
		q := Request{Owner: o.owner(), Purpose: o.rangePurpose(), Bits: pick(o, 22, 23, 24, 28, 32)}
		if o.next()%2 == 0 {
			q.Real = o.prefix()
			q.Preferred, q.Bits = q.Real, q.Real.Bits()
		}
		got, err := r.Acquire(q)
		want, ok := m.acquire(q)
		return fmt.Sprintf("acquire %+v", q), differ(err, ok, got, want)
	case 6:
		q, inside := Request{Owner: o.owner(), Purpose: o.addressPurpose()}, o.prefix()
		got, err := r.AcquireAddress(q, inside)
		want, ok := m.acquireAddress(q, inside)
		return fmt.Sprintf("acquire address %+v in %s", q, inside), differ(err, ok, got, want)
	default:
		owner, purposes := o.owner(), []Purpose{o.rangePurpose(), o.addressPurpose()}[:o.next()%3]
		before := m.list()
		released, err := r.Release(owner, purposes...)
		ok := m.release(owner, purposes...)
		gone := slices.DeleteFunc(before, func(h Reservation) bool { return slices.Contains(m.held, h) })
		return fmt.Sprintf("release %s %s", owner, purposes), differ(err, ok, len(released), len(gone))
	}
}

// differ compares the registry's answer with the model's.
func differ(err error, ok bool, got, want any) string {
	if (err == nil) != ok {
		return fmt.Sprintf("error %v, but the model's success is %t", err, ok)
	}
	if err == nil && got != want {
		return fmt.Sprintf("%v, but the model says %v", got, want)
	}
	return ""
}

// run does the operations and checks what must hold at each point.
func run(t *testing.T, bytes []byte) *Registry {
	t.Helper()
	pools := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/20"), netip.MustParsePrefix("10.1.0.0/22")}
	r, err := New(pools...)
	if err != nil {
		t.Fatal(err)
	}
	m := &model{pools: pools}
	for o := (&operations{bytes}); len(o.bytes) > 0; {
		done, difference := o.step(r, m)
		if difference != "" {
			t.Fatalf("%s: %s", done, difference)
		}
		if want, got := m.list(), r.List(); !slices.Equal(want, got) {
			t.Fatalf("after %s (-model +registry):\n%s", done, cmp.Diff(want, got, comparePrefixes))
		}
	}
	return r
}

// check verifies what holds for every registry.
func check(t *testing.T, r *Registry) {
	t.Helper()
	held := r.List()
	for i, a := range held {
		for _, b := range held[:i] {
			if a.claim().address() == b.claim().address() && a.Range.Overlaps(b.Range) && (!a.Shared || !b.Shared) {
				t.Errorf("%+v and %+v overlap", a, b)
			}
		}
	}
	shuffled := slices.Clone(held)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) {
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	})
	restored, err := Restore(r.Pools(), shuffled)
	if err != nil {
		t.Fatalf("restore: %v", err)
	}
	if !sameSpace(r.ranges, restored.ranges) || !sameSpace(r.addresses, restored.addresses) {
		t.Error("the free space depends on the way to the same reservations")
	}
}

func sameSpace(a, b space) bool { return sameNode(a.v4, b.v4) && sameNode(a.v6, b.v6) }

func sameNode(a, b *node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.blocks == b.blocks && slices.Equal(a.held, b.held) &&
		sameNode(a.child[0], b.child[0]) && sameNode(a.child[1], b.child[1])
}

// releaseAll releases everything and expects the state of the beginning.
func releaseAll(t *testing.T, r *Registry) {
	t.Helper()
	// Peerings hold addresses inside the cluster's ranges and the cluster inside theirs: addresses go first.
	for _, purposes := range [][]Purpose{{GatewayAddress, ExposedHost}, nil} {
		for _, h := range r.List() {
			if _, err := r.Release(h.Owner, purposes...); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(r.List()) > 0 || r.ranges != (space{}) || r.addresses != (space{}) || len(r.claims) > 0 {
		t.Errorf("something is left after the release of all: %+v", r)
	}
}

func TestOperationsAgreeWithModel(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, seed))
		bytes := make([]byte, 1000)
		for i := range bytes {
			bytes[i] = byte(random.Uint32())
		}
		r, again := run(t, bytes), run(t, bytes)
		if !reflect.DeepEqual(r, again) {
			t.Errorf("seed %d: the same operations end in different states", seed)
		}
		check(t, r)
		releaseAll(t, r)
	}
}

func FuzzOperations(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 4, 0, 1, 6, 1, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0})
	f.Add([]byte{0, 4, 0, 3, 0, 3, 1, 1, 3, 4, 7, 1, 0, 6, 1, 0, 4, 0, 3, 7, 0, 3, 0, 1, 2})
	f.Add([]byte{4, 1, 5, 2, 0, 16, 1, 3, 4, 2, 5, 2, 0, 16, 1, 3, 7, 1, 5, 0, 0})
	f.Fuzz(func(t *testing.T, bytes []byte) {
		// The model takes time with the square of the length.
		r := run(t, bytes[:min(len(bytes), 600)])
		check(t, r)
		releaseAll(t, r)
	})
}

// TestAcquireUntilFull fills a pool to the last address.
func TestAcquireUntilFull(t *testing.T) {
	r, err := New(netip.MustParsePrefix("192.168.0.0/26"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 64 {
		got, err := r.Acquire(Request{Owner: Peering(fmt.Sprint(i)), Purpose: PeerPods, Bits: 32})
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		if want := netip.AddrFrom4([4]byte{192, 168, 0, byte(i)}); got.Range.Addr() != want {
			t.Errorf("%d: %s, not %s", i, got.Range, want)
		}
	}
	if _, err := r.Acquire(Request{Owner: Peering("late"), Purpose: PeerPods, Bits: 32}); !errors.Is(err, ErrNoneFree) {
		t.Errorf("a full pool answers %v", err)
	}
	releaseAll(t, r)
}
