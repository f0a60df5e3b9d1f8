package kernel

import (
	"net/netip"
	"testing"

	"liqonet.io/liqonet/internal/testbed/require"
)

func TestSmallestMTU(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	for _, command := range []string{
		"link add wide type veth peer name wide-far", "link set wide mtu 1500 up", "link set wide-far mtu 1500 up",
		"link add narrow type veth peer name narrow-far", "link set narrow mtu 1450 up", "link set narrow-far mtu 1450 up",
		"addr add 192.0.2.1/24 dev wide", "addr add 192.0.3.1/24 dev narrow",
		"route add 10.244.0.0/24 via 192.0.2.2", "route add 10.244.1.0/24 via 192.0.3.2",
		"route add 10.245.0.0/24 via 192.0.2.2 mtu 1400",
		"route add 10.246.0.0/16 via 192.0.3.2", "route add 10.246.1.0/24 via 192.0.3.2 table 100",
		"route add unreachable 10.247.0.0/16",
	} {
		ns.IP(command)
	}
	k := ns.kernel()
	for _, tc := range []struct {
		within string
		want   int
	}{
		{"10.244.0.0/16", 1450}, // the smaller of two routes
		{"10.244.0.0/24", 1500},
		{"10.245.0.0/16", 1400}, // of the route, smaller than its link's
		{"10.246.1.0/24", 0},    // another table, and a route to more than the range
		{"10.247.0.0/16", 0},
	} {
		got, err := k.SmallestMTU([]netip.Prefix{netip.MustParsePrefix(tc.within)})
		require.NoError(t, err)
		if got != tc.want {
			t.Errorf("within %s: %d, want %d", tc.within, got, tc.want)
		}
	}
}
