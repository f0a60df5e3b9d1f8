package ipam

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
)

var (
	prefix  = netip.MustParsePrefix
	address = netip.MustParseAddr
)

// installed returns a registry in the state after the installation of a cluster.
func installed(t testing.TB) *Registry {
	t.Helper()
	r, err := Restore(DefaultPools(), []Reservation{
		{Range: prefix("10.244.0.0/16"), Owner: Cluster, Purpose: PodCIDR},
		{Range: prefix("10.96.0.0/12"), Owner: Cluster, Purpose: ServiceCIDR},
		{Range: prefix("172.18.0.0/16"), Owner: Cluster, Purpose: NodeNetwork, Shared: true},
		{Range: prefix("10.70.0.0/16"), Owner: Cluster, Purpose: ExternalCIDR},
		{Range: prefix("10.80.0.0/16"), Owner: Cluster, Purpose: InternalCIDR},
	})
	require.NoError(t, err)
	return r
}

func TestAcquire(t *testing.T) {
	for _, c := range []struct {
		name    string
		request Request
		want    string // the range
	}{
		{"identity where free", Request{Real: prefix("10.20.0.0/16")}, "10.20.0.0/16"},
		{"identity outside the pools", Request{Real: prefix("100.64.0.0/16")}, "100.64.0.0/16"},
		{"identity in IPv6", Request{Real: prefix("fd00:10:244::/56")}, "fd00:10:244::/56"},
		{"remapped beside a small hole", Request{Real: prefix("10.244.0.0/16")}, "10.71.0.0/16"},
		{"remapped where the peer's range is around ours", Request{Real: prefix("10.240.0.0/13")}, "10.72.0.0/13"},
		{"remapped where the peer's range is inside ours", Request{Real: prefix("10.244.8.0/24")}, "10.71.0.0/24"},
		{"preferred before identity", Request{Real: prefix("10.20.0.0/16"), Preferred: prefix("10.30.0.0/16")}, "10.30.0.0/16"},
		{"no preference", Request{Bits: 12}, "10.112.0.0/12"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := installed(t)
			c.request.Owner, c.request.Purpose = Peering("b"), PeerPods
			got, err := r.Acquire(c.request)
			require.NoError(t, err)
			want := Reservation{Range: prefix(c.want), Owner: Peering("b"), Purpose: PeerPods, Real: c.request.Real}
			if got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			before := r.List()
			if again, err := r.Acquire(c.request); err != nil || again != got {
				t.Errorf("again: %+v, %v", again, err)
			}
			assert.Equal(t, "acquiring again changed", before, r.List(), comparePrefixes)
		})
	}
}

func TestAcquireFromTheNextPool(t *testing.T) {
	r, err := New(prefix("172.16.0.0/12"), prefix("10.0.0.0/8"))
	require.NoError(t, err)
	for i, want := range []string{"172.16.0.0/13", "172.24.0.0/13", "10.0.0.0/13"} {
		got, err := r.Acquire(Request{Owner: Peering(fmt.Sprint(i)), Purpose: PeerPods, Bits: 13})
		if err != nil || got.Range != prefix(want) {
			t.Errorf("%d: %s, %v; want %s", i, got.Range, err, want)
		}
	}
}

// TestPeersWithTheSameRange: each of several peers with the same range gets its own one, and keeps it when others
// leave.
func TestPeersWithTheSameRange(t *testing.T) {
	r := installed(t)
	got := map[string]string{}
	acquire := func(name string) {
		t.Helper()
		held, err := r.Acquire(Request{Owner: Peering(name), Purpose: PeerPods, Real: prefix("10.200.0.0/16")})
		require.NoError(t, err)
		got[name] = held.Range.String()
	}
	acquire("b")
	acquire("c")
	acquire("d")
	_, err := r.Release(Peering("b"))
	require.NoError(t, err)
	delete(got, "b")
	acquire("c")
	acquire("e")
	want := map[string]string{"c": "10.71.0.0/16", "d": "10.81.0.0/16", "e": "10.200.0.0/16"}
	assert.Equal(t, "reservations", want, got)
}

func TestConflictNamesBothSides(t *testing.T) {
	r := installed(t)
	_, err := r.Acquire(Request{Owner: Peering("c"), Purpose: PeerPods, Real: prefix("10.20.0.0/16")})
	require.NoError(t, err)
	for _, c := range []struct {
		want    Reservation
		message string
	}{
		{
			Reservation{Range: prefix("10.244.0.0/17"), Owner: Peering("b"), Purpose: PeerPods},
			`reserve 10.244.0.0/17 for peering "b" pods: conflict with pod CIDR 10.244.0.0/16`,
		}, {
			Reservation{Range: prefix("10.64.0.0/10"), Owner: Peering("b"), Purpose: PeerExternal},
			`reserve 10.64.0.0/10 for peering "b" external CIDR: conflict with external CIDR 10.70.0.0/16`,
		}, {
			Reservation{Range: prefix("10.20.0.0/16"), Owner: Cluster, Purpose: ServiceCIDR},
			`reserve 10.20.0.0/16 for service CIDR: conflict with peering "c" pods 10.20.0.0/16`,
		}, {
			Reservation{Range: prefix("172.18.0.0/24"), Owner: Peering("b"), Purpose: PeerPods},
			`reserve 172.18.0.0/24 for peering "b" pods: conflict with node network 172.18.0.0/16`,
		}, {
			Reservation{Range: prefix("10.21.0.0/16"), Owner: Peering("c"), Purpose: PeerPods, Real: prefix("10.20.0.0/16")},
			`reserve 10.21.0.0/16 for peering "c" pods: conflict with peering "c" pods 10.20.0.0/16`,
		},
	} {
		err := r.Reserve(c.want)
		var conflict *ConflictError
		if !errors.As(err, &conflict) || conflict.Wanted != c.want {
			t.Errorf("%+v: %v", c.want, err)
			continue
		}
		assert.Equal(t, "error", c.message, err.Error())
	}
}

func TestShared(t *testing.T) {
	r := installed(t)
	underlay := Reservation{Range: prefix("172.18.4.0/24"), Owner: Peering("b"), Purpose: PeerUnderlay, Shared: true}
	if err := r.Reserve(underlay); err != nil {
		t.Fatalf("shared with the node network: %v", err)
	}
	again := underlay
	again.Owner = Peering("c")
	if err := r.Reserve(again); err != nil {
		t.Fatalf("two peers on the same underlay: %v", err)
	}
	exclusive := underlay
	exclusive.Shared = false
	before := r.List()
	if err := r.Reserve(exclusive); err == nil {
		t.Error("a shared range became exclusive while others hold it")
	}
	assert.Equal(t, "a refused change changed", before, r.List(), comparePrefixes)
	got, err := r.Acquire(Request{Owner: Peering("b"), Purpose: PeerPods, Real: prefix("172.18.4.0/24")})
	if err != nil || got.Range == underlay.Range {
		t.Errorf("pods on the underlay: %+v, %v", got, err)
	}
	_, err = r.Release(Peering("b"), PeerUnderlay)
	require.NoError(t, err)
	assert.Equal(t, "held by b after its underlay is released", []Reservation{got}, r.Held(Peering("b")), comparePrefixes)
	if owner, ok := r.OwnerOf(address("172.18.4.9")); !ok || owner != again {
		t.Errorf("172.18.4.9 is of %+v", owner)
	}
}

func TestNoneFree(t *testing.T) {
	r := installed(t)
	require.NoError(t, r.Reserve(Reservation{Range: prefix("fd00::/56"), Owner: Cluster, Purpose: PodCIDR}))
	for _, c := range []struct {
		request Request
		message string
	}{
		{
			Request{Bits: 8},
			`acquire a /8 for peering "b" pods: no free addresses (pools: 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16)`,
		}, {
			Request{Real: prefix("fd00:0:0:8::/61")},
			`acquire a /61 for peering "b" pods: no free addresses (pools: none of that family)`,
		},
	} {
		c.request.Owner, c.request.Purpose = Peering("b"), PeerPods
		got, err := r.Acquire(c.request)
		if !errors.Is(err, ErrNoneFree) {
			t.Errorf("%+v: %+v, %v", c.request, got, err)
			continue
		}
		assert.Equal(t, "error", c.message, err.Error())
	}
}

// TestRequestRefused has requests that fail even in an empty registry.
func TestRequestRefused(t *testing.T) {
	for _, q := range []Request{
		{Owner: Peering("b"), Purpose: PeerPods},
		{Owner: Peering("b"), Purpose: PeerPods, Bits: 33},
		{Owner: Peering("b"), Purpose: PeerPods, Real: prefix("0.0.0.0/1")},
		{Owner: Peering("b"), Purpose: PeerPods, Real: prefix("127.0.0.0/8")},
		{Owner: Peering("b"), Purpose: PeerPods, Real: prefix("10.0.0.0/16"), Bits: 17},
		{Owner: Peering("b"), Purpose: PeerPods, Real: prefix("10.0.0.0/16"), Preferred: prefix("10.1.0.0/17")},
		{Owner: Peering("b"), Purpose: ExposedHost, Bits: 32},
		{Owner: Peering("b"), Purpose: Gateways, Bits: 29},
		{Owner: Cluster, Purpose: ExternalCIDR, Bits: 20}, // it holds a /16
		{Purpose: PeerPods, Bits: 16},
	} {
		got, err := installed(t).Acquire(q)
		if err == nil || errors.Is(err, ErrNoneFree) {
			t.Errorf("%+v: %+v, %v", q, got, err)
		}
	}
}

func TestAcquireAddress(t *testing.T) {
	r := installed(t)
	upper := prefix("10.70.128.0/17")
	acquire := func(q Request, inside netip.Prefix, want string) {
		t.Helper()
		got, err := r.AcquireAddress(q, inside)
		if err != nil || got != address(want) {
			t.Errorf("%+v in %s: %s, %v; want %s", q, inside, got, err, want)
		}
	}
	hostOf := func(name string) Request { return Request{Owner: Peering(name), Purpose: ExposedHost} }
	acquire(hostOf("b"), upper, "10.70.128.1")
	acquire(hostOf("c"), upper, "10.70.128.2")
	acquire(hostOf("b"), upper, "10.70.128.1")
	acquire(hostOf("d"), prefix("10.70.128.8/31"), "10.70.128.8")
	host := Request{Owner: Cluster, Purpose: ExposedHost, Real: prefix("192.168.7.8/32")}
	acquire(host, upper, "10.70.128.3")
	other := Request{Owner: Cluster, Purpose: ExposedHost, Real: prefix("192.168.7.9/32"), Preferred: prefix("10.70.200.200/32")}
	acquire(other, upper, "10.70.200.200")

	require.NoError(t, r.Reserve(Reservation{Range: prefix("10.80.128.8/29"), Owner: Peering("b"), Purpose: Gateways}))
	if owner, _ := r.OwnerOf(address("10.80.128.15")); owner.Owner != Peering("b") {
		t.Errorf("10.80.128.15 is of %+v", owner)
	}
	if owner, _ := r.OwnerOf(address("10.70.128.2")); owner.Owner != Peering("c") {
		t.Errorf("10.70.128.2 is of %+v", owner)
	}
	if owner, _ := r.OwnerOf(address("10.80.128.4")); owner.Purpose != InternalCIDR {
		t.Errorf("10.80.128.4 is of %+v", owner)
	}
	if owner, ok := r.OwnerOf(address("10.90.0.1")); ok {
		t.Errorf("10.90.0.1 is of %+v", owner)
	}

	// The first and last addresses are free, but not allocated.
	if _, err := r.AcquireAddress(hostOf("e"), prefix("10.70.128.0/30")); !errors.Is(err, ErrNoneFree) {
		t.Errorf("in a full range: %v", err)
	}
	for name, inside := range map[string]netip.Prefix{"e": prefix("10.80.0.0/16"), "b": prefix("10.70.129.0/24")} {
		if got, err := r.AcquireAddress(hostOf(name), inside); err == nil {
			t.Errorf("host %s in %s: %s", name, inside, got)
		}
	}
	if got, err := r.AcquireAddress(Request{Owner: Peering("e"), Purpose: Gateways}, prefix("10.80.128.0/17")); err == nil {
		t.Errorf("gateways: %s", got)
	}
}

func TestOverlapping(t *testing.T) {
	r := installed(t)
	for _, want := range []Reservation{
		{Range: prefix("10.80.128.8/29"), Owner: Peering("b"), Purpose: Gateways},
		{Range: prefix("10.9.0.0/24"), Owner: User("vpn"), Purpose: Reserved},
	} {
		require.NoError(t, r.Reserve(want))
	}
	for of, want := range map[string][]string{
		"10.9.0.0/16":    {`user "vpn" reserved range`},
		"10.9.0.7/32":    {`user "vpn" reserved range`},
		"10.9.0.0/24":    {`user "vpn" reserved range`},
		"10.9.1.0/24":    nil,
		"10.80.128.9/32": {"internal CIDR", `peering "b" gateways`},
		"10.80.0.0/15":   {"internal CIDR", `peering "b" gateways`},
		"10.0.0.0/9":     {`user "vpn" reserved range`, "external CIDR", "internal CIDR", `peering "b" gateways`, "service CIDR"},
		"fd00::/8":       nil,
	} {
		var got []string
		for _, h := range r.Overlapping(prefix(of)) {
			got = append(got, h.Use())
		}
		assert.Equal(t, of, want, got)
	}
	if got := r.Overlapping(netip.Prefix{}); got != nil {
		t.Errorf("nothing overlaps %+v", got)
	}
}

func TestReleaseKeepsRangesInUse(t *testing.T) {
	r := installed(t)
	require.NoError(t, r.Reserve(Reservation{Range: prefix("10.80.128.8/29"), Owner: Peering("b"), Purpose: Gateways}))
	before := r.List()
	_, err := r.Release(Cluster)
	var inUse *InUseError
	want := `release 10.80.0.0/16 of internal CIDR: peering "b" gateways 10.80.128.8 is inside`
	if !errors.As(err, &inUse) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	assert.Equal(t, "a refused release changed", before, r.List(), comparePrefixes)
	if released, err := r.Release(Peering("b")); err != nil || len(released) != 1 {
		t.Errorf("release b: %+v, %v", released, err)
	}
	if released, err := r.Release(Cluster); err != nil || len(released) != 5 {
		t.Errorf("release all: %+v, %v", released, err)
	}
}

func TestReleaseRange(t *testing.T) {
	r := installed(t)
	for _, real := range []string{"10.20.0.0/16", "10.21.0.0/16"} {
		_, err := r.Acquire(Request{Owner: Peering("b"), Purpose: PeerPods, Real: prefix(real)})
		require.NoError(t, err)
	}
	for range 2 {
		require.NoError(t, r.ReleaseRange(Peering("b"), PeerPods, prefix("10.20.0.0/16")))
	}
	if held := r.Held(Peering("b")); len(held) != 1 || held[0].Range != prefix("10.21.0.0/16") {
		t.Errorf("held after the release of one: %+v", held)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		reservation Reservation
		reason      string
	}{
		{Reservation{Owner: Cluster, Purpose: PodCIDR}, "invalid range"},
		{Reservation{Range: prefix("10.1.2.3/16"), Owner: Cluster, Purpose: PodCIDR}, "host bits set, the range is 10.1.0.0/16"},
		{Reservation{Range: prefix("::ffff:10.0.0.0/104"), Owner: Cluster, Purpose: PodCIDR}, "IPv6 form"},
		{Reservation{Range: prefix("10.1.0.0/16"), Owner: "someone", Purpose: PodCIDR}, `owner "someone"`},
		{Reservation{Range: prefix("10.1.0.0/16"), Owner: Peering("a b"), Purpose: PodCIDR}, `owner "peering/a b"`},
		{Reservation{Range: prefix("10.1.0.0/16"), Owner: Peering(""), Purpose: PodCIDR}, `owner "peering/"`},
		{Reservation{Range: prefix("10.1.0.0/16"), Owner: User("a\"b"), Purpose: Reserved}, `owner "user/a`},
		{Reservation{Range: prefix("10.1.0.0/16"), Owner: Cluster, Purpose: "dns"}, `unknown purpose "dns"`},
		{Reservation{Range: prefix("10.1.0.0/16"), Owner: Cluster, Purpose: PodCIDR, Real: prefix("10.1.0.0/17")}, "another length"},
		{Reservation{Range: prefix("10.70.0.0/24"), Owner: Cluster, Purpose: ExposedHost}, "exposed host is a /32"},
		{Reservation{Range: prefix("10.80.0.0/28"), Owner: Cluster, Purpose: Gateways}, "gateways is a /29"},
		{Reservation{Range: prefix("10.80.0.8/32"), Owner: Cluster, Purpose: Gateways}, "gateways is a /29"},
		{Reservation{Range: prefix("10.90.0.8/29"), Owner: Cluster, Purpose: Gateways}, "in no internal CIDR"},
		{Reservation{Range: prefix("0.0.0.0/0"), Owner: Peering("b"), Purpose: PeerPods}, "not for hosts"},
		{Reservation{Range: prefix("127.0.0.0/16"), Owner: Peering("b"), Purpose: PeerPods}, "not for hosts"},
		{Reservation{Range: prefix("169.254.18.0/24"), Owner: Peering("b"), Purpose: PeerExternal}, "not for hosts"},
	} {
		r := installed(t)
		before := r.List()
		if err := r.Reserve(c.reservation); err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%+v: %v, want %q", c.reservation, err, c.reason)
		}
		assert.Equal(t, "a refused reservation changed", before, r.List(), comparePrefixes)
	}
}

func TestPoolsRefused(t *testing.T) {
	for _, pools := range [][]netip.Prefix{
		{{}},
		{prefix("10.0.0.1/8")},
		{prefix("10.0.0.0/8"), prefix("10.1.0.0/16")},
		{prefix("0.0.0.0/0")},
	} {
		if _, err := New(pools...); err == nil {
			t.Errorf("pools %s accepted", pools)
		}
	}
}
