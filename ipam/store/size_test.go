package store

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam"
)

// limit is the maximum size of the data of a ConfigMap, in bytes (core/validation, MaxSecretSize).
const limit = 1 << 20

// TestTwoThousandPeeringsFit measures the text of a cluster with 2,000 peers that have the same ranges and long names.
// Nodes are not part of it: each has a Lease.
func TestTwoThousandPeeringsFit(t *testing.T) {
	const peerings = 2000
	r := installed(t)
	for i := range peerings {
		owner := ipam.Peering(fmt.Sprintf("production-europe-west-%04d", i))
		underlay := netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)}), 32)
		gateways := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 80, 128 + byte((i+2)>>5), byte((i + 2) << 3)}), 29)
		require.NoError(t, r.Reserve(ipam.Reservation{Range: gateways, Owner: owner, Purpose: ipam.Gateways}))
		require.NoError(t, r.Reserve(ipam.Reservation{Range: underlay, Owner: owner, Purpose: ipam.PeerUnderlay, Shared: true}))
		for _, q := range []ipam.Request{
			{Owner: owner, Purpose: ipam.PeerPods, Real: prefix("10.244.0.0/20")},
			{Owner: owner, Purpose: ipam.PeerExternal, Real: prefix("10.70.0.0/22")},
		} {
			_, err := r.Acquire(q)
			require.NoError(t, err)
		}
	}
	text := Encode(r)
	t.Logf("%d peerings, %d reservations: %d bytes, %d a peering, %d%% of what a ConfigMap holds",
		peerings, len(r.List()), len(text), len(text)/peerings, 100*len(text)/limit)
	if len(text) > limit*3/4 {
		t.Errorf("%d bytes, want a quarter of %d to spare", len(text), limit)
	}
	if lines := strings.Count(text, "production-"); lines != 4*peerings {
		t.Errorf("%d lines, want %d", lines, 4*peerings)
	}
	if _, err := Decode(text); err != nil {
		t.Error(err)
	}
}
