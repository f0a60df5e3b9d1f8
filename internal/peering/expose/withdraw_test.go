package expose_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/peering/expose"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/connected"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam"
)

func TestExposeAndWithdraw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected.New(t)
		want := expose.Exposure{Peer: "b", Changed: true, ExposedHost: status.ExposedHost{
			Host: netip.MustParseAddr("198.51.100.7"), Address: netip.MustParseAddr("10.70.128.1"),
			ReachedAt: netip.MustParseAddr("10.81.128.1"), Served: true,
		}}
		got, err := expose.Expose(t.Context(), connected.Exposing(a, "198.51.100.7"), &fakecluster.Recorder{})
		if err != nil || got != want {
			t.Fatalf("%+v, %v, want %+v", got, err, want)
		}
		want.Changed = false
		if got, err := expose.Expose(t.Context(), connected.Exposing(a, "198.51.100.7"), &fakecluster.Recorder{}); err != nil || got != want {
			t.Errorf("again: %+v, %v, want %+v", got, err, want)
		}
		second, err := expose.Expose(t.Context(), connected.Exposing(a, "172.31.1.200"), &fakecluster.Recorder{})
		if err != nil || second.Address != netip.MustParseAddr("10.70.128.2") {
			t.Errorf("another: %+v, %v", second, err)
		}
		a.ExpectExposed(t, "10.70.128.1 for 198.51.100.7", "10.70.128.2 for 172.31.1.200")
		all, err := status.Read(t.Context(), status.Options{Cluster: a.Cluster})
		if err != nil || !slices.Equal(all[0].Exposed, []status.ExposedHost{second.ExposedHost, want.ExposedHost}) {
			t.Errorf("status: %+v, %v", all[0].Exposed, err)
		}
		if got, err := peering.Connect(t.Context(), connected.Options(a, b), &fakecluster.Recorder{}); err != nil || got.Changed {
			t.Errorf("connect afterwards: changed %v: %v, %v", got.Changed, got.Objects, err)
		}
		want.Changed, want.Served = true, false
		if got, err := expose.Withdraw(t.Context(), connected.Exposing(a, "198.51.100.7"), &fakecluster.Recorder{}); err != nil || got != want {
			t.Errorf("withdraw: %+v, %v, want %+v", got, err, want)
		}
		none := expose.Exposure{Peer: "b", ExposedHost: status.ExposedHost{Host: want.Host}}
		if got, err := expose.Withdraw(t.Context(), connected.Exposing(a, "198.51.100.7"), &fakecluster.Recorder{}); err != nil || got != none {
			t.Errorf("withdraw again: %+v, %v", got, err)
		}
		a.ExpectExposed(t, "10.70.128.2 for 172.31.1.200")
		fakecluster.Must(t, removal.Disconnect, removal.DisconnectOptions{Local: a.Cluster, Remote: b.Cluster})
		a.ExpectExposed(t)
	})
}

// TestExposeWaits: expose does not succeed before the gateway reports the host, and withdraw does not release the
// address before the gateway no longer does.
func TestExposeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connected.New(t)
		a.Set(func() { a.IgnoresRecords = true })
		o := connected.Exposing(a, "198.51.100.7")
		o.Timeout = 5 * time.Second
		_, err := expose.Expose(t.Context(), o, &fakecluster.Recorder{})
		if err == nil || !strings.Contains(err.Error(), "let 198.51.100.7 pass") || hint.Of(err) == "" {
			t.Errorf("expose with a deaf gateway: %v (%s)", err, hint.Of(err))
		}
		a.Set(func() { a.IgnoresRecords = false })
		fakecluster.Must(t, expose.Expose, o)
		a.Set(func() { a.IgnoresRecords = true })
		_, err = expose.Withdraw(t.Context(), o, &fakecluster.Recorder{})
		assert.ErrorContains(t, "withdraw with a deaf gateway", err, "forget 198.51.100.7")
		if held := a.ExposedHosts(t, "b"); len(held) != 1 {
			t.Errorf("held while the gateway may still serve it: %q", held)
		}
		a.Set(func() { a.IgnoresRecords = false })
		fakecluster.Must(t, expose.Withdraw, o)
		a.ExpectExposed(t)
	})
}

// TestExposedHostsAreNoPeers: while a host is exposed, its address is not part of another peer's remapped CIDRs;
// otherwise one peer would reach the other by it.
func TestExposedHostsAreNoPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connected.New(t)
		wide := netip.MustParsePrefix("192.0.2.0/24")
		given := func() netip.Prefix {
			r, err := inventory.Reservations(t.Context(), a.Cluster)
			require.NoError(t, err)
			got, err := r.Acquire(ipam.Request{Owner: ipam.Peering("c"), Purpose: ipam.PeerPods, Real: wide})
			require.NoError(t, err)
			return got.Range
		}
		fakecluster.Must(t, expose.Expose, connected.Exposing(a, "192.0.2.7"))
		if got := given(); got.Overlaps(wide) {
			t.Errorf("pods of another peer get %s", got)
		}
		a.ExpectExposed(t, "10.70.128.1 for 192.0.2.7")
		fakecluster.Must(t, expose.Withdraw, connected.Exposing(a, "192.0.2.7"))
		if got := given(); got != wide {
			t.Errorf("after the withdrawal pods of another peer get %s, want %s", got, wide)
		}
	})
}

// TestExposeTooMany: a host for which there is no room is rejected, and reserves nothing.
func TestExposeTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connected.New(t)
		_, err := inventory.Swap(t.Context(), a.Cluster, records.PeeringName("b"), func(p *records.Peering) (records.Peering, error) {
			for i := range records.MaxExposed {
				last := [2]byte{byte(i >> 8), byte(i)}
				p.Exposed = append(p.Exposed, records.Exposed{
					Host: netip.AddrFrom4([4]byte{198, 18, last[0], last[1]}), Address: netip.AddrFrom4([4]byte{10, 70, 128 + last[0], last[1]}),
				})
			}
			return *p, nil
		})
		require.NoError(t, err)
		if _, err := expose.Expose(t.Context(), connected.Exposing(a, "198.51.100.7"), &fakecluster.Recorder{}); err == nil || hint.Of(err) == "" {
			t.Errorf("host %d: %v (%s)", records.MaxExposed+1, err, hint.Of(err))
		}
		if held := a.ExposedHosts(t, "b"); len(held) > 0 {
			t.Errorf("held: %v", held)
		}
	})
}

func TestExposeRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connected.New(t)
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
			Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"172.31.1.10"}}},
		}
		_, err := a.Fake.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Create(t.Context(), slice, metav1.CreateOptions{})
		require.NoError(t, err)
		for host, want := range map[string]string{
			"2001:db8::1":       "not an IPv4 address",
			"::ffff:198.51.1.1": "not an IPv4 address",
			"127.0.0.1":         "loopback",
			"169.254.18.1":      "link-local",
			"224.0.0.1":         "multicast",
			"0.0.0.0":           "reserved range",
			"255.255.255.255":   "reserved range",
			"10.244.1.5":        "inside pod CIDR 10.244.0.0/16",
			"10.96.0.1":         "inside service CIDR 10.96.0.0/16",
			"10.70.0.1":         "inside external CIDR 10.70.0.0/16",
			"10.80.128.1":       "inside internal CIDR 10.80.0.0/16",
			"10.71.3.7":         `inside peering "b" pods 10.71.0.0/16`,
			"172.31.1.11":       "node a1",
			"172.31.1.10":       "API server",
		} {
			_, err := expose.Expose(t.Context(), connected.Exposing(a, host), &fakecluster.Recorder{})
			var unfit *progress.InputError
			if !errors.As(err, &unfit) || !strings.Contains(err.Error(), want) || unfit.Hint() == "" || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v, want %q and a hint", host, err, want)
			}
		}
		o := connected.Exposing(a, "198.51.100.7")
		o.Peer = "c"
		if _, err := expose.Expose(t.Context(), o, &fakecluster.Recorder{}); !errors.As(err, new(*inventory.NoPeeringError)) {
			t.Errorf("an unknown peer: %v", err)
		}
		a.ExpectExposed(t)
		if got := a.Peering(t).Exposed; len(got) > 0 {
			t.Errorf("exposed: %v", got)
		}
	})
}
