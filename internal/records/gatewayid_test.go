package records_test

import (
	"encoding/json"
	"testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestGatewayID: every GatewayID has exactly one text form.
func TestGatewayID(t *testing.T) {
	for _, id := range []records.GatewayID{{"b", 1}, {"b", 2}, {"b-2", 8}, {"2", 1}} {
		text, err := json.Marshal(map[records.GatewayID]int{id: 1})
		require.NoError(t, err)
		var read map[records.GatewayID]int
		if err := json.Unmarshal(text, &read); err != nil || read[id] != 1 {
			t.Errorf("%s is read as %v, %v", text, read, err)
		}
	}
	for _, text := range []string{"", ".", ".2", "b.", "b.1", "b.0", "b.02", "b.+2", "b.9", "b.-1", "b.2.3", "B", "b/2"} {
		var id records.GatewayID
		if id.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q is read as %+v", text, id)
		}
	}
}
