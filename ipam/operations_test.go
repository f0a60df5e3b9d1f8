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

	"liqonet.io/liqonet/internal/testbed/require"
)

// comparePrefixes lets cmp compare the unexported fields of package netip.
var comparePrefixes = cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })

// run applies the operations to the registry and to the model, and compares them after each one.
func run(t *testing.T, bytes []byte) *Registry {
	t.Helper()
	pools := []netip.Prefix{prefix("10.0.0.0/20"), prefix("10.1.0.0/22"), prefix("fd00::/116"), prefix("fd01::/118")}
	r, err := New(pools...)
	require.NoError(t, err)
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

// check verifies the invariants of every registry.
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
	if !slices.Equal(r.ranges.held, restored.ranges.held) || !slices.Equal(r.addresses.held, restored.addresses.held) {
		t.Error("what is held depends on the way to the same reservations")
	}
}

// releaseAll releases all reservations and verifies that the registry is empty.
func releaseAll(t *testing.T, r *Registry) {
	t.Helper()
	// Addresses first: peerings hold addresses inside the cluster's ranges, and the cluster holds addresses inside
	// theirs.
	for _, purposes := range [][]Purpose{{Gateways, ExposedHost}, nil} {
		for _, h := range r.List() {
			_, err := r.Release(h.Owner, purposes...)
			require.NoError(t, err)
		}
	}
	if len(r.List()) > 0 || len(r.claims) > 0 {
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
		// The model's cost grows with the square of the length.
		r := run(t, bytes[:min(len(bytes), 600)])
		check(t, r)
		releaseAll(t, r)
	})
}

func TestAcquireUntilFull(t *testing.T) {
	r, err := New(netip.MustParsePrefix("192.168.0.0/26"))
	require.NoError(t, err)
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
