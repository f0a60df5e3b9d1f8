package status

import (
	"net/netip"
	"testing"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
)

func TestDisagreements(t *testing.T) {
	pods := func(seen string) AddressRange {
		return AddressRange{Kind: "pods", Original: netip.MustParsePrefix("10.244.0.0/16"), ReachedAt: netip.MustParsePrefix(seen)}
	}
	sides := func() (a, b Peering) {
		of := func(cluster, peer string, role records.Role, there, own AddressRange) Peering {
			return Peering{
				Cluster: cluster, Peer: peer, Role: role, State: health.Healthy, MTU: MTU{Value: 1420},
				Addresses: []AddressRange{there}, OwnAddresses: []AddressRange{own},
			}
		}
		theirs, ours := pods("10.71.0.0/16"), pods("10.244.0.0/16")
		return of("a", "b", records.Client, theirs, ours), of("b", "a", records.Server, ours, theirs)
	}
	for name, c := range map[string]struct {
		change func(a, b *Peering)
		want   []Disagreement
	}{
		"none":          {func(_, _ *Peering) {}, []Disagreement{}},
		"state":         {func(a, _ *Peering) { a.State = health.Down }, []Disagreement{{"state", "down", "healthy"}}},
		"other name":    {func(_, b *Peering) { b.Peer = "north" }, []Disagreement{{"name of a", "a", "north"}}},
		"two servers":   {func(a, _ *Peering) { a.Role = records.Server }, []Disagreement{{"WireGuard server", "a", "b"}}},
		"two clients":   {func(_, b *Peering) { b.Role = records.Client }, []Disagreement{{"WireGuard server", "b", "a"}}},
		"MTU unknown":   {func(a, _ *Peering) { a.MTU, a.Role = MTU{}, "" }, []Disagreement{}},
		"no own copies": {func(a, b *Peering) { a.OwnAddresses, b.OwnAddresses = nil, nil }, []Disagreement{}},
		"the peer's ranges": {
			func(a, _ *Peering) { a.Addresses[0] = pods("10.72.0.0/16") },
			[]Disagreement{{"CIDRs of b", "pods 10.72.0.0/16 (10.244.0.0/16)", "pods 10.71.0.0/16 (10.244.0.0/16)"}},
		},
		"own ranges": {
			func(_, b *Peering) { b.Addresses = append(b.Addresses, pods("10.73.0.0/16")) },
			[]Disagreement{{"CIDRs of a", "no others", "pods 10.73.0.0/16 (10.244.0.0/16)"}},
		},
	} {
		a, b := sides()
		c.change(&a, &b)
		assert.Equal(t, name, c.want, Disagreements(a, b))
	}
}
