package e2e

import (
	"context"
	"testing"
	"time"

	"liqonet.io/liqonet/lab"
)

// patience limits the wait for a state whose time is not tested: a busy machine is no fault. look is the interval of
// attempts.
const (
	patience = 5 * time.Minute
	look     = 500 * time.Millisecond
)

// awaitRollout waits until every pod of a DaemonSet is ready.
func awaitRollout(ctx context.Context, t *testing.T, l *lab.Lab, cluster, namespace, daemonSet string) {
	t.Helper()
	kubectl(ctx, t, l, cluster, "-n", namespace, "rollout", "status", "daemonset/"+daemonSet, "--timeout="+patience.String())
}

// await waits for a state, and fails the test with the last observation on a timeout.
func await(ctx context.Context, t *testing.T, holds func() bool, last func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("not in %s: %s", patience, last())
		case <-tick.C:
		}
	}
}
