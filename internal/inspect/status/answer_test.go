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

// TestOldestKey checks that the age of keys is that of the oldest key, and unknown if one of them is unknown.
func TestOldestKey(t *testing.T) {
	new, old := time.Unix(1_700_000_000, 0), time.Unix(1_600_000_000, 0)
	for _, test := range []struct {
		created []time.Time
		want    time.Time
	}{
		{[]time.Time{new}, new},
		{[]time.Time{new, old}, old},
		{[]time.Time{new, {}}, time.Time{}},
		{[]time.Time{{}, new}, time.Time{}},
	} {
		var gateways []health.Observation
		for _, created := range test.created {
			gateways = append(gateways, health.Observation{Status: &records.Status{KeyCreated: created}})
		}
		if got := describeStatus(records.Peering{}, gateways, nil).KeyCreated(); !got.Equal(test.want) {
			t.Errorf("of %v: %v, want %v", test.created, got, test.want)
		}
	}
}
