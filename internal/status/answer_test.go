package status

import (
	"testing"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

// TestDrift: what the reports of gateway and nodes tell is in the status of a peering.
func TestDrift(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	gateway, node := records.Drift{Times: 2, Last: at, What: "tunnel"}, records.Drift{Times: 3, Last: at, What: "rule"}
	s := &records.Status{Drift: gateway, Nodes: []records.NodeStatus{{Name: "n1"}, {Name: "n2", Drift: node}, {Name: "gone", Drift: node}}}
	got := describeStatus(records.Peering{Name: "b"}, []health.Observation{{Status: s, Nodes: []string{"n1", "n2"}}}, nil)
	if got.Drift != gateway || got.Nodes[0].Drift != (records.Drift{}) || got.Nodes[1].Drift != node || got.Drifts() != 5 {
		t.Errorf("status %+v, %d times: want that of the gateway and of n2", got, got.Drifts())
	}
}
