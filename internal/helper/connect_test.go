//go:build linux

package helper

import "testing"

// TestHelpersConnect: packets cross two clusters of the same ranges, whose kernels nobody but the helpers configured.
func TestHelpersConnect(t *testing.T) {
	server, client := twoClusters(t)
	crosses(t, server, client)
	for _, c := range []*testCluster{server, client} {
		if s, n := c.written.get(); s.Loss != 0 || s.Drift.Times != 0 || n.Drift.Times != 0 || len(s.Failed) != 0 {
			t.Errorf("%s: status %+v, node %+v: want no loss, no drift, no failure", c.role, s, n)
		}
		for _, p := range []*process{c.nodeHelper, c.gatewayHelper} {
			if n := p.counter(driftMetric); n != 0 {
				t.Errorf("%s: %v objects count as drift although nobody touched them", c.role, n)
			}
		}
	}
}
