//go:build linux

package helper

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/internal/testbed/topology"
	"liqonet.io/liqonet/netops"
)

// TestDrift checks that differences from the state of the last pass are drift, and changes by a new record are not.
func TestDrift(t *testing.T) {
	nodes := topology.NodeOfTwoPeers()
	two := netops.NodeState(nodes)
	nodes.Peers = nodes.Peers[:1]
	one := netops.NodeState(nodes)

	ns, k := sample.OpenKernel(t)
	m := NewMetrics()
	r := NewReconciler(k, slog.New(slog.DiscardHandler), m)
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
		var found []Drifted
		if have, err := k.Observe(); err != nil {
			t.Fatal(err)
		} else if r.reached != nil {
			found = drifted(have, r.reached())
		}
		before := sample.Total(t, m.Registry, "liqonet_kernel_drift_total")
		if err := r.Pass(step.want); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		names := make([]string, len(found))
		for i, o := range found {
			names[i] = o.name
		}
		assert.Equal(t, fmt.Sprintf("%s: drift", step.name), step.drift, names, cmpopts.EquateEmpty())
		if counted := sample.Total(t, m.Registry, "liqonet_kernel_drift_total") - before; counted != float64(len(step.drift)) {
			t.Errorf("%s: the metric counts %v objects, want %d", step.name, counted, len(step.drift))
		}
	}
}

func TestDriftIsCounted(t *testing.T) {
	m := NewMetrics()
	r := NewReconciler(nil, slog.New(slog.DiscardHandler), m)
	var events []string
	r.Event = func(reason, _ string) { events = append(events, reason) }
	r.AddDrift()
	if got := r.Drift; got != (records.Drift{}) {
		t.Errorf("of nothing: %+v", got)
	}
	r.AddDrift(Drifted{"rule", "rule 104 table 7600"}, Drifted{"link", "link lqn-overlay"})
	r.AddDrift(TunnelObject(netops.Tunnel))
	if got := r.Drift; got.Times != 2 || got.What != "tunnel lqn-tunnel" || got.Last.IsZero() {
		t.Errorf("recorded %+v", got)
	}
	if len(events) != 2 {
		t.Errorf("events %q, want one for each pass", events)
	}
	if got := sample.Total(t, m.Registry, "liqonet_kernel_drift_total"); got != 3 {
		t.Errorf("metric counts %v objects, want 3", got)
	}
}
