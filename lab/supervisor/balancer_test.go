package supervisor

import (
	"net/netip"
	"slices"
	"testing"

	kube "liqonet.io/liqonet/lab/cluster"
	"liqonet.io/liqonet/lab/spec"
)

func TestAssign(t *testing.T) {
	pool := spec.BalancerPool(1)
	address := func(n int) netip.Addr { return spec.BalancerAddress(pool, n) }
	none := netip.Addr{}
	for name, test := range map[string]struct {
		services []kube.BalancedService
		want     []netip.Addr
	}{
		"first free":             {[]kube.BalancedService{{Address: address(2)}, {}, {}}, []netip.Addr{address(2), address(1), address(3)}},
		"wanted":                 {[]kube.BalancedService{{}, {Wanted: address(1)}}, []netip.Addr{address(2), address(1)}},
		"another one is wanted":  {[]kube.BalancedService{{Address: address(1), Wanted: address(7)}}, []netip.Addr{address(7)}},
		"wanted and taken":       {[]kube.BalancedService{{Address: address(1)}, {Wanted: address(1)}}, []netip.Addr{address(1), none}},
		"wanted of another pool": {[]kube.BalancedService{{Wanted: spec.BalancerAddress(spec.BalancerPool(0), 1)}}, []netip.Addr{none}},
	} {
		if got := assign(test.services, pool); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
