package peering

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// interruptedAt interrupts a connect when it is about to write an object of cluster a, and returns its output.
func interruptedAt(t *testing.T, a, b *fakecluster.Cluster, resource, name string) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o, r := connectOptions(a, b), &fakecluster.Recorder{}
	o.Remote.Cluster = b.Unlocked()
	o.Local.Cluster = a.Intercept(resource, name, func() error {
		cancel()
		return ctx.Err()
	})
	if _, err := Connect(ctx, o, r); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	return r.Lines()
}

// checkKept reports objects of two clusters that no longer exist after do.
func checkKept(t *testing.T, a, b *fakecluster.Cluster, do func()) {
	t.Helper()
	before := [2]map[string]string{fakecluster.Contents(t, a.Cluster), fakecluster.Contents(t, b.Cluster)}
	do()
	for i, w := range []*fakecluster.Cluster{a, b} {
		now := fakecluster.Contents(t, w.Cluster)
		for object := range before[i] {
			if _, ok := now[object]; !ok {
				t.Errorf("cluster %s: %s is gone", w.Context, object)
			}
		}
	}
}

// TestUnfinishedIsCompleted: the objects of a killed connect can be completed, also after another connect has failed,
// and removed.
func TestUnfinishedIsCompleted(t *testing.T) {
	for name, next := range map[string]func(*testing.T, *fakecluster.Cluster, *fakecluster.Cluster){
		"connect": func(t *testing.T, a, b *fakecluster.Cluster) {
			fakecluster.Must(t, Connect, connectOptions(a, b))
			checkGatewayCounts(t, a, b, 1, 1)
		},
		"disconnect": func(t *testing.T, a, b *fakecluster.Cluster) {
			fakecluster.Must(t, removal.Disconnect, removal.DisconnectOptions{Local: a.Cluster, Remote: b.Cluster, Timeout: time.Minute})
			fakecluster.ExpectNoTraces(t, a, b)
		},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			a, b := fakecluster.RunPair(t)
			killed := newConnector(connectOptions(a, b), progress.Quiet{})
			require.NoError(t, steps(t, killed.reach, killed.discover, killed.install, killed.awaitNodes, killed.prepare))
			checkKept(t, a, b, func() {
				if output := interruptedAt(t, a, b, "configmaps", "peering-b"); !strings.Contains(strings.Join(output, "\n"), `peering "b" stays`) {
					t.Errorf("output %q", output)
				}
			})
			next(t, a, b)
		})
	}
}

// TestRollbackByCluster: a failed connect does not change a cluster with remains of a killed one, and rolls back its
// changes in the other one.
func TestRollbackByCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		killed := newConnector(connectOptions(a, b), progress.Quiet{})
		require.NoError(t, steps(t, killed.reach, killed.discover, killed.install, killed.awaitNodes, killed.prepare))
		fakecluster.Must(t, removal.Disconnect, removal.DisconnectOptions{Local: b.Cluster, Peer: "a", OneSide: true, Timeout: time.Minute})
		installed := fakecluster.Contents(t, b.Cluster)
		before := fakecluster.Contents(t, a.Cluster)
		interruptedAt(t, a, b, "configmaps", "peering-b")
		if now := fakecluster.Contents(t, b.Cluster); len(now) != len(installed) {
			t.Errorf("cluster b has %d objects, had %d", len(now), len(installed))
		}
		if now := fakecluster.Contents(t, a.Cluster); len(now) != len(before) {
			t.Errorf("cluster a has %d objects, had %d", len(now), len(before))
		}
		fakecluster.Must(t, Connect, connectOptions(a, b))
		checkGatewayCounts(t, a, b, 1, 1)
	})
}
