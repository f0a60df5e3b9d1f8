package choose

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam"
)

// manyPeerings returns a cluster with that many peerings, at most 4,095, each with four reservations. Of every four,
// one has no record. Half of these, one in eight, have no objects at all. Another one of every four lacks an address.
func manyPeerings(tb testing.TB, peerings int) State {
	tb.Helper()
	registry, err := ipam.New(ipam.DefaultPools()...)
	require.NoError(tb, err)
	a := State{Registry: registry, Fabric: &records.Fabric{ExternalCIDRs: parsed.Prefixes("10.70.0.0/16"), InternalCIDRs: parsed.Prefixes("10.80.0.0/16")}}
	err = errors.Join(
		registry.Reserve(ipam.Reservation{Range: a.Fabric.ExternalCIDR(), Owner: ipam.Cluster, Purpose: ipam.ExternalCIDR}),
		registry.Reserve(ipam.Reservation{Range: a.Fabric.InternalCIDR(), Owner: ipam.Cluster, Purpose: ipam.InternalCIDR}))
	for i := range peerings {
		at := func(first, second byte) netip.Addr {
			return netip.AddrFrom4([4]byte{first, second + byte(i>>8), byte(i), 0})
		}
		p := records.Peering{Name: fmt.Sprintf("cluster-%d", i), Number: 1 + i}
		p.Peer.PodCIDRs = []records.Mapping{{Real: netip.MustParsePrefix("10.244.0.0/24"), Seen: netip.PrefixFrom(at(10, 128), 24)}}
		p.Peer.ExternalCIDRs = []records.Mapping{{Real: netip.MustParsePrefix("10.70.0.0/24"), Seen: netip.PrefixFrom(at(10, 192), 24)}}
		held := append(a.used(p), ipam.Reservation{
			Range: netip.PrefixFrom(at(11, 0), 24), Owner: ipam.Peering(p.Name), Purpose: ipam.PeerUnderlay, Shared: true,
		})
		for _, h := range held {
			if i%4 != 1 || h.Purpose != ipam.Gateways {
				err = errors.Join(err, registry.Reserve(h))
			}
		}
		if i%4 != 0 {
			a.Peerings = append(a.Peerings, p)
		}
		if i%8 != 0 {
			a.Begun = append(a.Begun, p.Name, p.Name) // once for each object
		}
	}
	require.NoError(tb, err)
	return a
}

// TestManyPeerings checks the reservations of 2,000 peerings.
func TestManyPeerings(t *testing.T) {
	a := manyPeerings(t, 2000)
	before := time.Now()
	found := a.Findings()
	t.Logf("found in %s", time.Since(before))
	for kind, want := range map[FindingKind]int{Orphan: 250 * 4, Begun: 250 * 4, Missing: 500, Leak: 0, Overlap: 0} {
		of := func(f Finding) bool { return f.Kind != kind }
		if got := len(slices.DeleteFunc(slices.Clone(found), of)); got != want {
			t.Errorf("%d %s, want %d", got, kind, want)
		}
	}
}

func BenchmarkFindings(b *testing.B) {
	for _, peerings := range []int{200, 2000} {
		b.Run(fmt.Sprint(peerings), func(b *testing.B) {
			a := manyPeerings(b, peerings)
			for b.Loop() {
				a.Findings()
			}
		})
	}
}
