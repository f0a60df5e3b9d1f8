package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

// performance has the fields of `network test --perf -o json` that tests use.
type performance struct {
	Passed      bool
	Performance []struct {
		From           struct{ Cluster string }
		Tunnel, Direct struct{ StreamBitsPerSecond, StreamsBitsPerSecond, P50Seconds, P99Seconds, ConnectionsPerSecond float64 }
		Ratios         struct{ Stream, P50, Connections float64 }
	}
}

// testPerformance measures the tunnel and the path of the nodes themselves. The ratios are those of one machine on
// which all runs: what counts is that there are any, and that nothing is left.
func testPerformance(ctx context.Context, t *testing.T, c liqoctl) {
	var r performance
	out := c.must(ctx, t, "network", "test", "--context", "a", "--remote-context", "b", "--perf", "--streams", "2", "-o", "json", "--timeout", "5m")
	if err := json.Unmarshal([]byte(out), &r); err != nil || !r.Passed || len(r.Performance) != 2 || r.Performance[0].From.Cluster != "a" || r.Performance[1].From.Cluster != "b" {
		t.Errorf("%v: %s", err, out)
	}
	for _, p := range r.Performance {
		if p.Tunnel.StreamBitsPerSecond < 1e6 || p.Tunnel.StreamsBitsPerSecond < 1e6 || p.Tunnel.P50Seconds <= 0 || p.Tunnel.P99Seconds < p.Tunnel.P50Seconds ||
			p.Tunnel.ConnectionsPerSecond < 1 || p.Direct.StreamBitsPerSecond < 1e6 || p.Ratios.Stream <= 0 || p.Ratios.P50 <= 0 || p.Ratios.Connections <= 0 {
			t.Errorf("figures %+v", p)
		}
	}
	for _, cluster := range []string{"a", "b"} {
		if left := kubectl(ctx, t, c.lab, cluster, "-n", "liqonet", "get", "daemonsets,pods,services", "-o", "name"); strings.Contains(left, "/test-") {
			t.Errorf("left in %s:\n%s", cluster, left)
		}
	}
}

// testTree shows both sides of a healthy peering as a tree and as a diagram.
func testTree(ctx context.Context, t *testing.T, c liqoctl) {
	var drawn string
	wants := []string{
		"cluster a\n", "peering with b: healthy\n", "cluster b\n", "peering with a: healthy\n", "gateway 1: healthy, pod gateway-b-", "tunnel to gateway 1: healthy, ",
		"nodes: 1 of 1 verified\n", "nodes: 2 of 2 verified\n",
	}
	await(ctx, t, func() bool { // a measurement may have delayed echoes
		drawn, _, _ = c.run(ctx, t, "network", "status", "--context", "a", "--remote-context", "b", "-o", "tree")
		for _, want := range wants {
			if !strings.Contains(drawn, want) {
				return false
			}
		}
		return true
	}, func() string { return drawn })
	diagram, _, _ := c.run(ctx, t, "network", "status", "--context", "a", "--remote-context", "b", "-o", "mermaid")
	if !strings.HasPrefix(diagram, "flowchart LR\n") || strings.Count(diagram, "===") != 1 || strings.Contains(diagram, "not read") {
		t.Error(diagram)
	}
}
