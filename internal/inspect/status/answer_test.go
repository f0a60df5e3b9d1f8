package status

import (
	"testing"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

// TestDrift checks that a peering's status contains the drift in the reports of gateway and nodes.
func TestDrift(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	gateway, node := records.Drift{Times: 2, Last: at, What: "tunnel"}, records.Drift{Times: 3, Last: at, What: "rule"}
	s := &records.Status{Drift: gateway, Nodes: []records.NodeStatus{{Name: "n1"}, {Name: "n2", Drift: node}, {Name: "gone", Drift: node}}}
	got := describeStatus(records.Peering{Name: "b"}, []health.Observation{{Status: s, Nodes: []string{"n1", "n2"}}}, nil)
	nodes, drifts := got.NodeStates(), got.Totals().Drifts
	if got.Gateways[0].Drift != gateway || nodes[0].Drift != (records.Drift{}) || nodes[1].Drift != node || drifts != 5 {
		t.Errorf("status %+v, %d times: want that of the gateway and of n2", got, drifts)
	}
}
