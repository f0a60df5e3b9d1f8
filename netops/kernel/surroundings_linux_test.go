package kernel

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/netops"
)

func TestSurroundings(t *testing.T) {
	t.Parallel()
	near, far := netns.New(t), netns.New(t)
	near.IP("link add eth0 type veth peer name eth0 netns " + far.Path())
	far.IP("addr add 10.9.0.2/24 dev eth0")
	far.IP("link set eth0 up")
	for _, command := range []string{
		"addr add 10.9.0.1/24 dev eth0", "addr add 10.9.8.9/32 dev lo", "link set eth0 up", "route add default via 10.9.0.2",
		"route add 10.20.0.0/16 via 10.9.0.2", "route add 10.21.0.0/24 via 10.9.0.2 table 77", "route add blackhole 10.22.0.0/16",
		"route add unreachable 10.23.0.0/16 table 88",
		// Ours, by protocol or by link.
		fmt.Sprintf("route add 10.71.0.0/16 via 10.9.0.2 proto %d table 7600", netops.Protocol),
		"link add " + netops.Prefix + "x type veth peer name x", "link set " + netops.Prefix + "x up", "link set x up",
		"addr add 10.80.0.7/16 dev " + netops.Prefix + "x",
	} {
		near.IP(command)
	}
	k, err := OpenAt(near.FD())
	require.NoError(t, err)
	defer func() { _ = k.Close() }()
	got, err := k.Surroundings()
	require.NoError(t, err)
	slices.SortFunc(got.Routes, netip.Prefix.Compare)
	if want := "[10.9.0.0/24 10.20.0.0/16 10.21.0.0/24 10.22.0.0/16 10.23.0.0/16]"; fmt.Sprint(got.Routes) != want {
		t.Errorf("routes %v, want %s", got.Routes, want)
	}
	slices.SortFunc(got.Addresses, netip.Addr.Compare)
	if want := "[10.9.0.1 10.9.8.9 127.0.0.1]"; fmt.Sprint(got.Addresses) != want {
		t.Errorf("addresses %v, want %s", got.Addresses, want)
	}
}

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
