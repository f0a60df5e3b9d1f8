package plan

import (
	"fmt"
	"testing"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/ipam"
)

// TestDifferencesNeedConsent: what an earlier run left open, and keys, are completed without consent; a value is never
// mistaken for what its text looks like.
func TestDifferencesNeedConsent(t *testing.T) {
	const key = "gateways[0].tunnels[1].tunnel.wireguard.publicKey"
	for _, c := range []struct {
		object string
		field  kube.FieldChange
		asks   bool
	}{
		{"fabric", kube.FieldChange{Path: "mtu", Old: float64(0), New: float64(1400)}, false},
		{"fabric", kube.FieldChange{Path: "mtu", New: float64(1400)}, false},
		{"fabric", kube.FieldChange{Path: "mtu", Old: float64(1500), New: float64(1400)}, true},
		{"fabric", kube.FieldChange{Path: "overlay.kind", Old: "none", New: "vxlan"}, true},
		{"fabric", kube.FieldChange{Path: "name", Old: "", New: "known after apply"}, true},
		{"fabric", kube.FieldChange{Path: "name", Old: "eu: 0 -> known after apply", New: "us"}, true},
		{"peering-b", kube.FieldChange{Path: key, Old: "old", New: "new"}, false},
		{"peering-b", kube.FieldChange{Path: key, Old: "old", New: "", Later: true}, false},
		{"peering-b", kube.FieldChange{Path: "gateways[0].tunnels[1].endpoints", Old: []any{"192.0.2.1:51840"}, New: []any{"192.0.2.2:51840"}}, true},
		{"peering-b", kube.FieldChange{Path: "role", Old: "server", New: "client"}, true},
		{"ipam", kube.FieldChange{Path: "reservations", Verb: "reserve", New: reservation{Owner: ipam.Peering("b"), Purpose: ipam.PeerPods}}, false},
		{"ipam", kube.FieldChange{Path: "reservations", Verb: "reserve", New: reservation{Owner: ipam.Cluster, Purpose: ipam.Reserved}}, true},
		{"ipam", kube.FieldChange{Path: "reservations", Verb: "release", Old: reservation{Owner: ipam.Cluster, Purpose: ipam.Reserved}}, false},
		{"ipam", kube.FieldChange{Path: "pools", Old: pools{}, New: pools{}}, true},
	} {
		p := ClusterPlan{Context: "a", Changes: []kube.Change{{Kind: "ConfigMap", Name: c.object, Action: kube.Changed, Fields: []kube.FieldChange{c.field}}}}
		assert.Equal(t, fmt.Sprintf("%s %s asks", c.object, c.field), c.asks, len(Plan{Clusters: []ClusterPlan{p}}.Differing().Clusters[0].Changes) > 0)
	}
}
