package peering

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/choose"
)

// expectNumbers checks the numbers of a cluster's peerings, in its records and in its reservations.
func expectNumbers(t *testing.T, w *fakecluster.Cluster, when string, want map[string]int) {
	t.Helper()
	peerings, err := inventory.Peerings(t.Context(), w.Cluster)
	require.NoError(t, err)
	registry, err := inventory.Reservations(t.Context(), w.Cluster)
	require.NoError(t, err)
	fabric, err := inventory.Fabric(t.Context(), w.Cluster)
	require.NoError(t, err)
	for _, p := range peerings {
		held := registry.Held(ipam.Peering(p.Name), ipam.Gateways)
		if p.Number != want[p.Name] || len(held) != 1 || held[0].Range != records.GatewayAddresses(fabric.InternalCIDR(), p.Number) {
			t.Errorf("%s: peering %s of cluster %s has number %d, and reserved %v; want %d", when, p.Name, w.Context, p.Number, held, want[p.Name])
		}
	}
	if len(peerings) != len(want) {
		t.Errorf("%s: cluster %s has %d peerings, want %d", when, w.Context, len(peerings), len(want))
	}
}

// TestNumbersStay: each cluster numbers its peerings by itself. A number stays while a connect changes the peering, or
// is killed and repeated, and is free again after the peering is removed.
func TestNumbersStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakecluster.Third()
		fakecluster.Run(t, c)
		a, b := fakecluster.RunPair(t)
		fakecluster.Must(t, Connect, connectOptions(c, b))
		expectNumbers(t, b, "connected with c", map[string]int{"c": 1})
		killed := newConnector(connectOptions(a, b), progress.Quiet{})
		require.NoError(t, steps(t, killed.reach, killed.discover, killed.install, killed.awaitNodes, killed.prepare))
		if one, other := killed.local.number, killed.remote.number; one != 1 || other != 2 {
			t.Errorf("a killed connect reserved numbers %d and %d", one, other)
		}
		fakecluster.Must(t, Connect, connectOptions(a, c))
		expectNumbers(t, a, "another connect before the killed one is repeated", map[string]int{"c": 2})
		fakecluster.Must(t, Connect, connectOptions(a, b))
		expectNumbers(t, a, "repeated", map[string]int{"b": 1, "c": 2})
		expectNumbers(t, b, "repeated", map[string]int{"a": 2, "c": 1})

		fakecluster.Must(t, removal.Disconnect, removal.DisconnectOptions{Local: c.Cluster, Remote: b.Cluster, Timeout: time.Minute})
		fakecluster.Must(t, Connect, gatewayOptions(a, b, 2, 3))
		expectNumbers(t, b, "updated while a lower number is free", map[string]int{"a": 2})
		lost := connectOptions(a, b)
		lost.Update = true
		b.ChangeRegistry(t, func(r *ipam.Registry) error {
			_, err := r.Release(ipam.Peering("a"))
			return err
		})
		fakecluster.Must(t, Connect, lost)
		expectNumbers(t, b, "after its reservations were lost", map[string]int{"a": 2})
		fakecluster.Must(t, Connect, connectOptions(c, b))
		expectNumbers(t, b, "connected with c again", map[string]int{"a": 2, "c": 1})
	})
}

// TestNoNumberIsFree: a connect is refused if the internal CIDR has no number left, and leaves nothing.
func TestNoNumberIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		o := connectOptions(a, b)
		o.Local.InternalCIDR, o.Local.ExternalCIDR = prefix("10.80.0.0/24"), prefix("10.70.0.0/24")
		fakecluster.Must(t, Connect, o)
		fakecluster.Must(t, removal.Disconnect, removal.DisconnectOptions{Local: a.Cluster, Remote: b.Cluster, Timeout: time.Minute})
		for i := range 15 {
			a.ChangeRegistry(t, func(r *ipam.Registry) error {
				_, err := choose.Number(r, "p"+strings.Repeat("x", i), prefix("10.80.0.0/24"), 0)
				return err
			})
		}
		before := fakecluster.Contents(t, a.Cluster)
		_, err := Connect(t.Context(), o, &fakecluster.Recorder{})
		if !errors.Is(err, ipam.ErrNoneFree) || !strings.Contains(err.Error(), "15 peerings") || !strings.Contains(hint.Of(err), "disconnect") {
			t.Errorf("error %v, hint %q", err, hint.Of(err))
		}
		if now := fakecluster.Contents(t, a.Cluster); len(now) != len(before) {
			t.Errorf("%d objects, had %d", len(now), len(before))
		}
	})
}
