package choose

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/store"
)

// TestGatewayAddresses: an existing gateway keeps its address when others are added and removed; reservations of an
// interrupted run are used; removed gateways hold no reservations.
func TestGatewayAddresses(t *testing.T) {
	internal := netip.MustParsePrefix("10.80.0.0/24")
	address := func(n int) netip.Addr { return cidr.Address(cidr.Number(internal.Addr()) + 128 + uint32(n)) }
	addresses := func(hosts ...int) (all []netip.Addr) {
		for _, n := range hosts {
			all = append(all, address(n))
		}
		return all
	}
	tests := []struct {
		name          string
		held, current []int
		count         int
		want          []int
	}{
		{"the first one", nil, nil, 1, []int{2}},
		{"several", nil, nil, 3, []int{2, 3, 5}},
		{"again", []int{2, 3}, []int{2, 3}, 2, []int{2, 3}},
		{"one more, with a lower address", []int{5}, []int{5}, 2, []int{5, 2}},
		{"interrupted before the record was written", []int{2, 5}, []int{5}, 2, []int{5, 2}},
		{"interrupted before there was a record", []int{2, 5}, nil, 2, []int{2, 5}},
		{"one less", []int{2, 3, 5}, []int{5, 3, 2}, 2, []int{5, 3}},
		{"one that stands is not held", []int{3}, []int{6, 3}, 2, []int{2, 3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRegistry(t)
			_, _, err := ReserveOwn(r, Own{Internal: internal})
			require.NoError(t, err)
			hold := func(peering string, all []netip.Addr) {
				for _, a := range all {
					require.NoError(t, r.Reserve(ipam.Reservation{Range: cidr.Single(a), Owner: ipam.Peering(peering), Purpose: ipam.GatewayAddress}))
				}
			}
			hold("other", addresses(1, 4))
			hold("b", addresses(tt.held...))
			g := Gateways{Peering: "b", Internal: internal, Count: tt.count, Current: addresses(tt.current...)}
			all, err := g.Reserve(r)
			require.NoError(t, err)
			var got []netip.Addr
			for _, a := range all {
				got = append(got, a.Address)
				if a.Overlay != cidr.Offset(internal, a.Address) {
					t.Errorf("overlay %d of %s", a.Overlay, a.Address)
				}
			}
			if !slices.Equal(got, addresses(tt.want...)) {
				t.Errorf("%v, want %v", got, addresses(tt.want...))
			}
			for _, h := range tt.held {
				if !strings.Contains(store.Encode(r), address(h).String()+"/32") {
					t.Errorf("%s is released while the record names it", address(h))
				}
			}
			g.Current = got
			record := records.Peering{Name: "b"}
			for _, a := range got {
				record.Gateways = append(record.Gateways, records.LocalGateway{Address: a})
			}
			if err := ReleaseGateways(r, record); err != nil || len(r.Held(ipam.Peering("b"), ipam.GatewayAddress)) != tt.count {
				t.Errorf("after a release it holds %v (%v)", r.Held(ipam.Peering("b")), err)
			}
			if again, err := g.Reserve(r); err != nil || !slices.Equal(again, all) {
				t.Errorf("again: %v (%v), want %v", again, err, all)
			}
		})
	}
}
