package peering

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestNewCIDRsNeedConsent: a peer's new CIDRs in its fabric redirect no packets of this cluster before connect
// --update.
func TestNewCIDRsNeedConsent(t *testing.T) {
	const public = "8.8.8.0/24"
	set := func(t *testing.T, w *fakecluster.Cluster, pods ...netip.Prefix) {
		_, err := inventory.Swap(t.Context(), w.Cluster, records.FabricName, func(live *records.Fabric) (records.Fabric, error) {
			f := *live
			f.PodCIDRs = pods
			return f, nil
		})
		require.NoError(t, err)
	}
	gain := func(t *testing.T, w *fakecluster.Cluster) { set(t, w, prefix("10.244.0.0/16"), prefix(public)) }
	lose := func(t *testing.T, w *fakecluster.Cluster) { set(t, w, prefix("10.244.0.0/16")) }
	refused := func(t *testing.T, a *fakecluster.Cluster, err error) {
		t.Helper()
		if _, differs := errors.AsType[*plan.DifferenceError](err); !differs || !strings.Contains(err.Error(), public) || !strings.Contains(hint.Of(err), "--update") {
			t.Errorf("error %v, hint %q", err, hint.Of(err))
		}
		if len(a.Peering(t).Peer.PodCIDRs) != 1 {
			t.Errorf("adopted: %+v", a.Peering(t).Peer)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		a, b, before := rotated(t, 1, 1)
		r := newRotation(rotateOptions(a, b), &fakecluster.Recorder{})
		_, err := r.reach(t.Context())
		require.NoError(t, err)
		gain(t, b)
		_, err = r.prepare(t.Context())
		refused(t, a, err) // it was added meanwhile
		_, err = RotateKeys(t.Context(), rotateOptions(a, b), &fakecluster.Recorder{})
		refused(t, a, err)
		_, err = PlanRotateKeys(t.Context(), rotateOptions(a, b), &fakecluster.Recorder{})
		refused(t, a, err)
		if now := allKeys(t, a, b); !slices.Equal(now, before) {
			t.Errorf("keys were %s, are %s", before, now)
		}

		c := newConnector(connectOptions(a, b), &fakecluster.Recorder{})
		lose(t, b)
		require.NoError(t, steps(t, c.reach, c.discover, c.compare))
		gain(t, b)
		err = steps(t, c.install, c.awaitNodes, c.prepare, c.configure)
		if !errors.Is(err, kube.ErrConflict) || len(a.Peering(t).Peer.PodCIDRs) != 1 {
			t.Errorf("error %v, adopted: %+v", err, a.Peering(t).Peer)
		}
		_, err = Connect(t.Context(), connectOptions(a, b), &fakecluster.Recorder{})
		refused(t, a, err)

		named := func(r *fakecluster.Recorder) int {
			return strings.Count(r.Output(), `note cluster "a": packets to 8.8.8.0/24 go to b`)
		}
		output := func(o ConnectOptions) int {
			r := &fakecluster.Recorder{}
			if _, err := Connect(t.Context(), o, r); err != nil && !errors.As(err, new(*plan.DifferenceError)) {
				t.Fatal(err)
			}
			return named(r)
		}
		rendering := &fakecluster.Recorder{}
		if _, _, err := Render(t.Context(), renderOptions(a, b), rendering); err != nil || named(rendering) != 1 {
			t.Errorf("render names the range %d times, %v", named(rendering), err)
		}
		o := connectOptions(a, b)
		if n := output(o); n != 1 {
			t.Errorf("connect names the range %d times", n)
		}
		o.Update, o.Image = true, "newer" // second gateways carry packets while the only ones are replaced
		if n := output(o); n != 1 {
			t.Errorf("connect --update names the range %d times", n)
		}
		if n := output(o); n != 0 {
			t.Errorf("named %d times once it is agreed", n)
		}
		fakecluster.Must(t, RotateKeys, rotateOptions(a, b))
		checkRotated(t, a, b, 1, 1, before)
		if mappings := a.Peering(t).Peer.PodCIDRs; len(mappings) != 2 || !slices.Contains(mappings, records.Mapping{Real: prefix(public), Seen: prefix(public)}) {
			t.Errorf("after connect --update: %v", mappings)
		}
	})
}
