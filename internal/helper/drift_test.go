//go:build linux

package helper

import (
	"fmt"
	"log/slog"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/kernel"
)

// openKernel returns a namespace and its kernel.
func openKernel(t *testing.T) (netns.Namespace, *kernel.Kernel) {
	t.Helper()
	ns := netns.New(t)
	k, err := kernel.OpenAt(ns.FD())
	require.NoError(t, err)
	t.Cleanup(func() { _ = k.Close() })
	return ns, k
}

// TestDrift checks that differences from the state of the last pass are drift, and changes by a new record are not.
func TestDrift(t *testing.T) {
	v := testNodeView()
	state := func() netops.State { return v.state(netip.MustParseAddr("10.80.0.7")) }
	one := state()
	v.Peerings, v.gateways[firstGateway("c")] = append(v.Peerings, secondPeering()), secondGateway()
	two := state()

	ns, k := openKernel(t)
	m := newMetrics()
	r := newReconciler(k, slog.New(slog.DiscardHandler), m)
	for _, step := range []struct {
		name, others string // an external command before the pass
		want         netops.State
		drift        []string // names of objects
	}{
		{name: "first pass", want: one},
		{name: "new peering", want: two},
		{"rule deleted, and a peering gone", "ip rule del priority 104", one, []string{"rule 104 table 7600"}},
		{"rule deleted, and a new peering", "ip rule del priority 104", two, []string{"rule 104 table 7600"}},
		{"element deleted", "nft delete element ip liqonet peers '{ 10.11.0.0/16 }'", two, []string{"add element ip liqonet peers { 10.11.0.0/16 }"}},
	} {
		if step.others != "" {
			ns.Run("sh", "-ec", step.others)
		}
		var found []driftObject
		if have, err := k.Observe(); err != nil {
			t.Fatal(err)
		} else if r.reached != nil {
			found = drifted(have, r.reached())
		}
		before := m.total(t, "liqonet_kernel_drift_total")
		if err := r.pass(step.want); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		names := make([]string, len(found))
		for i, o := range found {
			names[i] = o.name
		}
		assert.Equal(t, fmt.Sprintf("%s: drift", step.name), step.drift, names, cmpopts.EquateEmpty())
		if counted := m.total(t, "liqonet_kernel_drift_total") - before; counted != float64(len(step.drift)) {
			t.Errorf("%s: the metric counts %v objects, want %d", step.name, counted, len(step.drift))
		}
	}
}

func TestDriftIsCounted(t *testing.T) {
	m := newMetrics()
	d := newDrift(slog.New(slog.DiscardHandler), m)
	d.add()
	if got := d.record(); got != (records.Drift{}) {
		t.Errorf("of nothing: %+v", got)
	}
	d.add(driftObject{"rule", "rule 104 table 7600"}, driftObject{"link", "link lqn-overlay"})
	d.add(tunnelObject(netops.Tunnel))
	if got := d.record(); got.Times != 2 || got.What != "tunnel lqn-tunnel" || got.Last.IsZero() {
		t.Errorf("recorded %+v", got)
	}
	if got := m.total(t, "liqonet_kernel_drift_total"); got != 3 {
		t.Errorf("metric counts %v objects, want 3", got)
	}
}
