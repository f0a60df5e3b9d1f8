package peering

import (
	"testing"

	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
)

// TestGatewaysOfNewPeerings: two gateways, but one in a cluster with a single node, and one if there are no ports for
// two.
func TestGatewaysOfNewPeerings(t *testing.T) {
	one := fakecluster.Node{Name: "a1", PodCIDR: "10.244.1.0/24", Address: "172.31.1.11"}
	lost := fakecluster.Node{Name: "a2", PodCIDR: "10.244.2.0/24", Address: "172.31.1.12", NotReady: true}
	for name, c := range map[string]struct {
		nodes []fakecluster.Node // of cluster a; nil: two
		set   func(*ConnectOptions)
		want  [2]int
	}{
		"two nodes":                 {want: [2]int{2, 2}},
		"one node":                  {nodes: []fakecluster.Node{one}, want: [2]int{1, 2}},
		"one Ready node":            {nodes: []fakecluster.Node{one, lost}, want: [2]int{1, 2}},
		"NodePort given":            {set: func(o *ConnectOptions) { o.NodePort = new(uint16(30840)) }, want: [2]int{1, 1}},
		"port of the Service given": {set: func(o *ConnectOptions) { o.ServicePort = new(uint16(4000)) }, want: [2]int{1, 1}},
		"port of the server given": {
			set:  func(o *ConnectOptions) { o.EndpointHost, o.EndpointPort = new("gate.example"), new(uint16(4000)) },
			want: [2]int{1, 1},
		},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			a, b := fakecluster.Pair()
			if c.nodes != nil {
				a = fakecluster.New("a", c.nodes...)
				fakecluster.RunGateways(a, b)
			}
			fakecluster.Run(t, a, b)
			o := unchangedOptions(a, b)
			if c.set != nil {
				c.set(&o)
			}
			fakecluster.Must(t, Connect, o)
			for side, w := range []*fakecluster.Cluster{a, b} {
				g := w.Peering(t).Gateways
				if got := [2]int{len(g), len(g[0].Tunnels)}; got != [2]int{c.want[side], c.want[1-side]} {
					t.Errorf("cluster %s: %d gateways with %d tunnels each, want %d", w.Context, got[0], got[1], c.want)
				}
			}
		})
	}
}
