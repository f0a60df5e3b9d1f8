package choose

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/store"
)

func ranges(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func newRegistry(t *testing.T) *ipam.Registry {
	t.Helper()
	r, err := ipam.New(ipam.DefaultPools()...)
	require.NoError(t, err)
	return r
}

func TestReserveOwn(t *testing.T) {
	tests := []struct {
		name               string
		own                Own
		external, internal string
		err                string
	}{
		{"usual", Own{Ranges: Ranges{Pods: ranges("10.244.0.0/16"), Services: ranges("10.96.0.0/12")}}, "10.70.0.0/16", "10.80.0.0/16", ""},
		{"pods everywhere in 10/8", Own{Ranges: Ranges{Pods: ranges("10.0.0.0/8")}}, "192.168.0.0/16", "172.16.0.0/16", ""},
		{"nodes and pods in one network", Own{Ranges: Ranges{Pods: ranges("10.0.0.0/16"), Nodes: ranges("10.0.1.0/24")}}, "10.70.0.0/16", "10.80.0.0/16", ""},
		{"requested ranges", Own{External: netip.MustParsePrefix("10.9.0.0/20"), Internal: netip.MustParsePrefix("10.9.16.0/20")}, "10.9.0.0/20", "10.9.16.0/20", ""},
		{"one requested range decides both lengths", Own{Internal: netip.MustParsePrefix("10.9.16.0/20")}, "10.70.0.0/20", "10.9.16.0/20", ""},
		{"a requested range in conflict", Own{Ranges: Ranges{Pods: ranges("10.9.0.0/16")}, External: netip.MustParsePrefix("10.9.0.0/20")}, "", "", "conflict with pod CIDR"},
		{"no room for nodes", Own{Internal: netip.MustParsePrefix("10.9.0.0/27"), External: netip.MustParsePrefix("10.8.0.0/27")}, "", "", "the length must be"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRegistry(t)
			external, internal, err := ReserveOwn(r, tt.own)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v", err)
				}
				return
			}
			require.NoError(t, err)
			if external.Bits() != internal.Bits() || external.Overlaps(internal) {
				t.Errorf("external %s, internal %s", external, internal)
			}
			if tt.name != "pods everywhere in 10/8" && (external.String() != tt.external || internal.String() != tt.internal) {
				t.Errorf("external %s, internal %s", external, internal)
			}
			before := store.Encode(r)
			if _, _, err := ReserveOwn(r, tt.own); err != nil || store.Encode(r) != before {
				t.Errorf("again: %v\n%s", err, store.Encode(r))
			}
		})
	}
}

func TestReservePeer(t *testing.T) {
	own := Own{Ranges: Ranges{Pods: ranges("10.244.0.0/16"), Services: ranges("10.96.0.0/12")}, Reserved: ranges("10.200.0.0/16")}
	tests := []struct {
		name string
		peer Remote
		want []string // real=seen
	}{
		{"free", Remote{Pods: ranges("10.20.0.0/16"), External: netip.MustParsePrefix("10.21.0.0/16")},
			[]string{"10.20.0.0/16=identity", "10.21.0.0/16=identity"}},
		{"taken", Remote{Pods: ranges("10.244.0.0/16"), External: netip.MustParsePrefix("10.70.0.0/16")},
			[]string{"10.244.0.0/16=other", "10.70.0.0/16=other"}},
		{"inside services", Remote{Pods: ranges("10.100.0.0/16"), External: netip.MustParsePrefix("10.21.0.0/16")},
			[]string{"10.100.0.0/16=other", "10.21.0.0/16=identity"}},
		{"reserved by the user", Remote{Pods: ranges("10.200.3.0/24"), External: netip.MustParsePrefix("10.21.0.0/16")},
			[]string{"10.200.3.0/24=other", "10.21.0.0/16=identity"}},
		{"a remapped range leaves the peer's others alone", Remote{Pods: ranges("10.244.0.0/16", "10.71.0.0/16"), External: netip.MustParsePrefix("10.81.0.0/16")},
			[]string{"10.244.0.0/16=other", "10.71.0.0/16=identity", "10.81.0.0/16=identity"}},
		{"a flat network", Remote{Pods: ranges("10.20.0.0/16"), External: netip.MustParsePrefix("10.21.0.0/16"), Underlay: ranges("10.20.1.0/24")},
			[]string{"10.20.0.0/16=identity", "10.21.0.0/16=identity"}},
		{"nodes where ours are pods", Remote{Pods: ranges("10.20.0.0/16"), External: netip.MustParsePrefix("10.21.0.0/16"), Underlay: ranges("10.244.1.0/24")},
			[]string{"10.20.0.0/16=identity", "10.21.0.0/16=identity"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRegistry(t)
			_, _, err := ReserveOwn(r, own)
			require.NoError(t, err)
			before := store.Encode(r)
			a, err := ReservePeer(r, "b", tt.peer)
			require.NoError(t, err)
			var got []string
			for _, m := range slices.Concat(a.Pods, a.External) {
				how := "other"
				if m.Identity() {
					how = "identity"
				}
				got = append(got, m.Real.String()+"="+how)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			again, err := ReservePeer(r, "b", tt.peer)
			if err != nil || !cmp.Equal(a, again, comparePrefixes()...) {
				t.Errorf("again: %+v, %v", again, err)
			}
			if _, err := r.Release(ipam.Peering("b")); err != nil || store.Encode(r) != before {
				t.Errorf("released: %v\n%s", err, store.Encode(r))
			}
		})
	}
}

// TestReservationsProperty: for random ranges of two clusters, the remapped ranges of the peer overlap none of the
// cluster's own, and changes of the peer's ranges leave no reservations behind.
func TestReservationsProperty(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	some := func() []netip.Prefix {
		var all []netip.Prefix
		for range 1 + random.IntN(3) {
			p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(random.IntN(64)), byte(random.IntN(256)), 0}), 12+random.IntN(12)).Masked()
			if !cidr.Overlaps(p, all) {
				all = append(all, p)
			}
		}
		return all
	}
	for range 300 {
		r := newRegistry(t)
		own := Own{Ranges: Ranges{Pods: some(), Services: some(), Nodes: some()}}
		external, internal, err := ReserveOwn(r, own)
		require.NoError(t, err)
		taken := append(append(append([]netip.Prefix{external, internal}, own.Pods...), own.Services...), own.Nodes...)
		for range 3 {
			peer := Remote{Pods: some(), External: external, Underlay: some()}
			a, err := ReservePeer(r, "b", peer)
			require.NoError(t, err)
			seen := make([]netip.Prefix, 0, len(a.Pods)+1)
			for _, m := range slices.Concat(a.Pods, a.External) {
				if cidr.Overlaps(m.Seen, taken) || cidr.Overlaps(m.Seen, seen) || m.Real.Bits() != m.Seen.Bits() {
					t.Fatalf("%+v with own %v", a, taken)
				}
				seen = append(seen, m.Seen)
			}
			if held := r.Held(ipam.Peering("b"), ipam.PeerPods, ipam.PeerExternal); len(held) != len(seen) {
				t.Fatalf("holds %v for %v", held, seen)
			}
		}
	}
}

// TestDesiredRanges checks that ranges in the fabric stay while they contain what was found, unless the user specifies
// others.
func TestDesiredRanges(t *testing.T) {
	found := Ranges{Pods: ranges("10.244.1.0/24"), Services: ranges("10.96.0.0/16"), Nodes: ranges("172.31.1.0/24", "172.31.5.0/24")}
	fabric := &records.Fabric{PodCIDRs: ranges("10.244.0.0/16"), ServiceCIDRs: ranges("10.96.0.0/16"), NodeNetworks: ranges("172.31.1.0/24")}
	got := Desired(found, Ranges{}, fabric)
	assert.Equal(t, "pods", fabric.PodCIDRs, got.Pods, comparePrefixes()...)
	assert.Equal(t, "nodes", found.Nodes, got.Nodes, comparePrefixes()...)
	got = Desired(found, Ranges{Pods: ranges("10.244.1.0/24")}, fabric)
	assert.Equal(t, "the user's pod CIDR is not used", found.Pods, got.Pods, comparePrefixes()...)
}

func comparePrefixes() []cmp.Option {
	return []cmp.Option{
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	}
}
