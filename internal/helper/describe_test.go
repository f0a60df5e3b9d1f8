//go:build linux

package helper

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/internal/testbed/topology"
	"liqonet.io/liqonet/netops"
)

// TestKernelStateIsLogged checks that the log has the whole kernel state in the desired state, once a day and not at
// every pass.
func TestKernelStateIsLogged(t *testing.T) {
	nodes := topology.NodeOfTwoPeers()
	nodes.Peers = nodes.Peers[:1]
	state := netops.NodeState(nodes)
	_, k := sample.OpenKernel(t)
	var log bytes.Buffer
	level := &slog.LevelVar{}
	r := NewReconciler(k, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level})), NewMetrics())
	for range 5 {
		require.NoError(t, r.Pass(state))
	}
	_, logged, _ := strings.Cut(log.String(), "kernel state")
	if strings.Count(log.String(), "kernel state") != 1 {
		t.Errorf("the state is logged %d times", strings.Count(log.String(), "kernel state"))
	}
	for _, want := range []string{"+ link lqn-gw", "+ route 10.11.0.0/16", "+ rule 104", "+ nexthop", "add rule ip liqonet", "+ address 10.80.0.7"} {
		if !strings.Contains(logged, want) {
			t.Errorf("no %q in %s", want, logged)
		}
	}
	differs, _, _ := strings.Cut(log.String(), "kernel state")
	if !strings.Contains(differs, "steps=") || !strings.Contains(differs, "firewall") || len(differs) > 1000 {
		t.Errorf("the log of a change has %d bytes, want the count of steps and the first ones:\n%s", len(differs), differs)
	}
	level.Set(slog.LevelDebug)
	log.Reset()
	require.NoError(t, r.Pass(netops.State{}))
	short, whole, _ := strings.Cut(log.String(), "wholePlan=")
	if last := "delete table ip6 liqonet"; strings.Contains(short, last) || !strings.Contains(whole, last) {
		t.Errorf("the plan is not cut, or not whole at level debug: %s", log.String())
	}
}
