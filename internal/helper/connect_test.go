//go:build linux

package helper

import (
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// TestHelpersConnect checks that packets cross between two clusters with equal ranges that only helpers configured.
func TestHelpersConnect(t *testing.T) {
	server, client := twoClusters(t)
	crosses(t, server, client)
	for _, c := range []*testCluster{server, client} {
		s, _ := c.status()
		if n := c.nodeReport(); s.Loss != 0 || s.Drift.Times != 0 || n.Drift.Times != 0 || len(s.Failed) != 0 {
			t.Errorf("%s: status %+v, node %+v: want no loss, no drift, no failure", c.role, s, n)
		}
		for _, p := range []*helperProcess{c.nodeHelper, c.gatewayHelper} {
			if n := p.counter(driftMetric); n != 0 {
				t.Errorf("%s: %v objects count as drift although nobody touched them", c.role, n)
			}
		}
	}
	// The packets that verify the path go to nodes of the peer, not to pods.
	client.node.IP("rule add pref 50 to 10.11.0.0/16 lookup main")
	wait.Until(t, "a rule of another program is reported", 5*time.Second, func() bool {
		s, _ := client.status()
		return strings.Contains(s.Nodes[0].Refused, "rule 50 to 10.11.0.0/16 table 254, ")
	})
	client.node.IP("rule del pref 50")
	wait.Until(t, "the rule is gone", 5*time.Second, func() bool {
		s, state := client.status()
		return s.Nodes[0].Refused == "" && state == string(health.Healthy)
	})
}
