package ipam

import (
	"fmt"
	"net/netip"
	"testing"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/testbed/require"
)

// crowded returns a registry with 10,000 reservations and small holes: two of every three /24 are reserved.
func crowded(b *testing.B) *Registry {
	b.Helper()
	var held []Reservation
	for i := 0; len(held) < 10000; i++ {
		if i%3 == 1 {
			continue
		}
		a := netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0})
		held = append(held, Reservation{
			Range: netip.PrefixFrom(a, 24), Owner: Peering(fmt.Sprintf("b%d", i)), Purpose: PeerPods, Real: prefix("10.244.0.0/24"),
		})
	}
	r, err := Restore(DefaultPools(), held)
	require.NoError(b, err)
	return r
}

func BenchmarkAcquire(b *testing.B) {
	r := crowded(b)
	for _, bits := range []int{16, 24, 28} {
		b.Run(fmt.Sprintf("slash%d", bits), func(b *testing.B) {
			for b.Loop() {
				// The preferred range is reserved, so that both the conflict and the search are measured.
				q := Request{Owner: Peering("new"), Purpose: PeerPods, Real: netip.PrefixFrom(address("10.0.0.0"), bits)}
				held, err := r.Acquire(q)
				require.NoError(b, err)
				r.remove(held)
			}
		})
	}
}

func BenchmarkAcquireAddress(b *testing.B) {
	r := installed(b)
	inside := prefix("10.70.0.0/16")
	for i := range 10000 {
		_, err := r.AcquireAddress(Request{Owner: Peering(fmt.Sprintf("b%d", i)), Purpose: ExposedHost}, inside)
		require.NoError(b, err)
	}
	for b.Loop() {
		a, err := r.AcquireAddress(Request{Owner: Peering("new"), Purpose: ExposedHost}, inside)
		require.NoError(b, err)
		r.remove(Reservation{Range: cidr.Single(a), Owner: Peering("new"), Purpose: ExposedHost})
	}
}
