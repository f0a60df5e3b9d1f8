package choose

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"go4.org/netipx"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/store"
)

// withInternal returns a registry of a cluster with that internal CIDR.
func withInternal(t *testing.T, internal string) (*ipam.Registry, netip.Prefix) {
	t.Helper()
	r, p := newRegistry(t), netip.MustParsePrefix(internal)
	_, _, err := ReserveOwn(r, Own{Internal: p})
	require.NoError(t, err)
	return r, p
}

// numbersOf returns the numbers that a peering holds.
func numbersOf(r *ipam.Registry, internal netip.Prefix, peering string) (all []int) {
	for _, h := range r.Held(ipam.Peering(peering), ipam.Gateways) {
		all = append(all, records.NumberOf(internal, h.Range.Addr()))
	}
	return all
}

// TestNumber: a peering keeps its number, and a number that an interrupted run has reserved is used.
func TestNumber(t *testing.T) {
	for _, tt := range []struct {
		name    string
		held    []int
		current int
		want    int
	}{
		{"the lowest free one", nil, 0, 2},
		{"again", []int{2}, 2, 2},
		{"interrupted before there was a record", []int{5}, 0, 5},
		{"not held", nil, 7, 7},
		{"held twice", []int{3, 5}, 5, 5},
		{"another one than that of the record", []int{5}, 7, 7},
		{"of another peering", nil, 4, 2},
		{"of another peering, and one held", []int{5}, 4, 5},
		{"out of the CIDR", nil, 4096, 2},
		{"huge", nil, 1<<20 - 1, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, internal := withInternal(t, "10.80.0.0/16")
			for peering, numbers := range map[string][]int{"other": {1}, "third": {4}, "b": tt.held} {
				for _, n := range numbers {
					require.NoError(t, r.Reserve(gateways(peering, internal, n)))
				}
			}
			for _, current := range []int{tt.current, tt.want} {
				got, err := Number(r, "b", internal, current)
				if held := numbersOf(r, internal, "b"); err != nil || got != tt.want || !slices.Equal(held, []int{tt.want}) {
					t.Errorf("%d (%v), held %v, want %d", got, err, held, tt.want)
				}
			}
		})
	}
	r, internal := withInternal(t, "10.80.0.0/16")
	require.NoError(t, r.Reserve(ipam.Reservation{Range: netip.MustParsePrefix("10.80.0.8/29"), Owner: ipam.Peering("b"), Purpose: ipam.Gateways}))
	if got, err := Number(r, "b", internal, 0); err != nil || got != 1 || !slices.Equal(numbersOf(r, internal, "b"), []int{1}) {
		t.Errorf("with addresses of nodes: %d (%v), held %v", got, err, numbersOf(r, internal, "b"))
	}
	if _, err := Number(newRegistry(t), "b", internal, 0); err == nil || errors.Is(err, ipam.ErrNoneFree) {
		t.Errorf("without an internal CIDR: %v", err)
	}
}

// TestMostPeerings fills internal CIDRs of all lengths that have few peerings, and the default one.
func TestMostPeerings(t *testing.T) {
	for internal, most := range map[string]int{"10.80.0.0/24": 15, "10.80.0.0/23": 31, "10.80.0.0/16": 4095} {
		r, internal := withInternal(t, internal)
		for i := range most - 15 {
			require.NoError(t, r.Reserve(gateways(fmt.Sprint("p", i), internal, i+1)))
		}
		for i := most - 15; i < most; i++ {
			if n, err := Number(r, fmt.Sprint("p", i), internal, 0); err != nil || n != i+1 {
				t.Fatalf("%s: peering %d has number %d (%v)", internal, i, n, err)
			}
		}
		if last := records.GatewayAddresses(internal, most); netipx.PrefixLastIP(last) != netipx.PrefixLastIP(internal) {
			t.Errorf("%s: the last gateways have %s", internal, last)
		}
		before := store.Encode(r)
		_, err := Number(r, "more", internal, 0)
		if !errors.Is(err, ipam.ErrNoneFree) || !strings.Contains(err.Error(), fmt.Sprintf("for %d peerings", most)) || !strings.Contains(hint.Of(err), "--internal-cidr") {
			t.Errorf("%s: error %v, hint %q", internal, err, hint.Of(err))
		}
		if store.Encode(r) != before {
			t.Errorf("%s: a refused number changes reservations", internal)
		}
		_, err = r.Release(ipam.Peering("p3"))
		require.NoError(t, err)
		if n, err := Number(r, "more", internal, 0); err != nil || n != 4 {
			t.Errorf("%s: after a release: %d (%v)", internal, n, err)
		}
	}
}

// TestNumbersProperty runs random connects, updates, interrupted connects and disconnects in one cluster: no two
// peerings have one number, a new one has the lowest that is free, and a number stays until its peering is removed.
func TestNumbersProperty(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, seed))
		r, internal := withInternal(t, "10.80.0.0/24")
		reserved, recorded := map[string]int{}, map[string]int{}
		for step := range 400 {
			name := fmt.Sprint("p", random.IntN(20))
			if random.IntN(3) == 0 {
				_, err := r.Release(ipam.Peering(name))
				require.NoError(t, err)
				delete(reserved, name)
				delete(recorded, name)
				continue
			}
			want, known := reserved[name]
			for n := 1; !known && n <= 15 && want == 0; n++ {
				if !slices.Contains(slices.Collect(maps.Values(reserved)), n) {
					want = n
				}
			}
			got, err := Number(r, name, internal, recorded[name])
			if got != want || (err != nil) != (want == 0) {
				t.Fatalf("seed %d, step %d: %s has number %d (%v), want %d", seed, step, name, got, err, want)
			}
			if err != nil {
				continue
			}
			if reserved[name] = got; random.IntN(2) == 0 { // else the run ends before it writes the record
				recorded[name] = got
			}
			if r, err = store.Decode(store.Encode(r)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
