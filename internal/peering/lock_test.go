package peering

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/expose"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// stoppedAt is a fakecluster.Recorder that calls stop some time after the start of a stage.
type stoppedAt struct {
	fakecluster.Recorder
	stage string
	after time.Duration
	stop  func()
}

func (s *stoppedAt) Stage(name string) {
	if name == s.stage {
		time.AfterFunc(s.after, s.stop)
	}
}

// TestConnectAgainImmediately interrupts a connect and runs it again: the second run waits for the rollback of the
// first.
func TestConnectAgainImmediately(t *testing.T) {
	for _, stage := range []string{progress.StageInstall, progress.StageNodes, progress.StageGateway, progress.StageTunnel, progress.StageProof} {
		for _, after := range []time.Duration{0, 50 * time.Millisecond} {
			bubble.Run(t, stage+" "+after.String(), func(t *testing.T) {
				a, b := fakecluster.RunPair(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				first := make(chan error, 1)
				go func() {
					_, err := Connect(ctx, connectOptions(a, b), &stoppedAt{stage: stage, after: after, stop: cancel})
					first <- err
				}()
				<-ctx.Done()
				again := &fakecluster.Recorder{}
				if _, err := Connect(t.Context(), connectOptions(a, b), again); err != nil {
					t.Errorf("again: %v", err)
				}
				if err := <-first; err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("interrupted: %v", err)
				}
				checkGatewayCounts(t, a, b, 1, 1)
				if t.Failed() {
					t.Logf("%q", again.Lines())
				}
			})
		}
	}
}

// lockOf returns the lock of a cluster.
func lockOf(t *testing.T, w *fakecluster.Cluster) *coordinationv1.Lease {
	t.Helper()
	lease, err := w.Fake.CoordinationV1().Leases(w.Namespace).Get(t.Context(), records.LockName, metav1.GetOptions{})
	require.NoError(t, err)
	return lease
}

// holdLock makes another run the holder of a cluster's lock, which never renews it.
func holdLock(t *testing.T, w *fakecluster.Cluster) {
	t.Helper()
	lease := lockOf(t, w)
	lease.Spec.HolderIdentity, lease.Spec.AcquireTime = new("bob@host: network connect"), new(metav1.NowMicro())
	_, err := w.Fake.CoordinationV1().Leases(w.Namespace).Update(t.Context(), lease, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// changed returns options that change a peering.
func changed(a, b *fakecluster.Cluster) ConnectOptions {
	o := connectOptions(a, b)
	o.Update, o.MTU = true, new(1300)
	return o
}

// TestUnchangedNeedsNoLock: an operation that changes nothing neither takes the lock nor waits for its holder.
func TestUnchangedNeedsNoLock(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, a, b *fakecluster.Cluster) error{
		"connect": func(t *testing.T, a, b *fakecluster.Cluster) error {
			_, err := Connect(t.Context(), connectOptions(a, b), &fakecluster.Recorder{})
			return err
		},
		"connect --update": func(t *testing.T, a, b *fakecluster.Cluster) error {
			o := connectOptions(a, b)
			o.Update = true
			_, err := Connect(t.Context(), o, &fakecluster.Recorder{})
			return err
		},
		"dry run": func(t *testing.T, a, b *fakecluster.Cluster) error {
			_, err := PlanConnect(t.Context(), changed(a, b), &fakecluster.Recorder{})
			return err
		},
		"refused": func(t *testing.T, a, b *fakecluster.Cluster) error {
			o := changed(a, b)
			o.Update = false
			_, err := Connect(t.Context(), o, &fakecluster.Recorder{})
			if _, differs := errors.AsType[*plan.DifferenceError](err); differs {
				return nil
			}
			return fmt.Errorf("want differences: %w", err)
		},
		"unexpose": func(t *testing.T, a, _ *fakecluster.Cluster) error {
			_, err := expose.Withdraw(t.Context(), exposing(a, "198.51.100.7"), &fakecluster.Recorder{})
			return err
		},
		"disconnect of another peer": func(t *testing.T, a, _ *fakecluster.Cluster) error {
			_, err := removal.Disconnect(t.Context(), removal.DisconnectOptions{Local: a.Cluster, Peer: "x", OneSide: true}, &fakecluster.Recorder{})
			return err
		},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			a, b := connected(t)
			holdLock(t, a)
			before, start := lockOf(t, a).ResourceVersion, time.Now()
			assert.NoError(t, do(t, a, b))
			if took := time.Since(start); took > 10*time.Second || lockOf(t, a).ResourceVersion != before {
				t.Errorf("it took %s, and the lock was changed: %v", took, lockOf(t, a).ResourceVersion != before)
			}
		})
	}
}

// TestLockOfKilledRun: a lock that is not renewed is taken over after its duration, or immediately.
func TestLockOfKilledRun(t *testing.T) {
	for name, c := range map[string]struct {
		locking  kube.LockOptions
		from, to time.Duration
		refused  bool
	}{
		"taken over":  {from: 15 * time.Second, to: 25 * time.Second},
		"broken":      {locking: kube.LockOptions{Break: true}, to: 10 * time.Second},
		"not awaited": {locking: kube.LockOptions{Timeout: 5 * time.Second}, from: 5 * time.Second, to: 8 * time.Second, refused: true},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			a, b := connected(t)
			holdLock(t, b)
			a.Locking, b.Locking = c.locking, c.locking
			o, r, start := changed(b, a), &fakecluster.Recorder{}, time.Now()
			o.LocalServes, o.Timeout = new(true), 4*time.Second // the wait for the lock does not count
			_, err := Connect(t.Context(), o, r)
			took := time.Since(start)
			if errors.Is(err, kube.ErrLocked) != c.refused || (err != nil) != c.refused || took < c.from || took > c.to {
				t.Errorf("after %s: %v", took, err)
			}
			if output := r.Output(); name != "broken" && !strings.Contains(output, `cluster "b" is locked by bob@host: network connect, since `) {
				t.Errorf("output %s", output)
			}
			if holder := lockOf(t, a).Spec.HolderIdentity; *holder != "" {
				t.Errorf("cluster a is still locked by %s", *holder)
			}
		})
	}
}

// TestLockLost: a run that has lost its lock to another run, or cannot renew it, writes nothing more and does not roll
// back.
func TestLockLost(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, a *fakecluster.Cluster){
		"taken": func(t *testing.T, a *fakecluster.Cluster) { holdLock(t, a) },
		"not renewed": func(_ *testing.T, a *fakecluster.Cluster) {
			a.Fake.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewServiceUnavailable("away")
			})
		},
		"removed": func(t *testing.T, a *fakecluster.Cluster) {
			assert.NoError(t, a.Fake.CoordinationV1().Leases(a.Namespace).Delete(t.Context(), records.LockName, metav1.DeleteOptions{}))
		},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			a, b := fakecluster.RunPair(t)
			a.Set(func() { a.IgnoresRecords = true }) // the run waits for reports
			r := &stoppedAt{stage: progress.StageNodes, stop: func() { lose(t, a) }}
			_, err := Connect(t.Context(), connectOptions(a, b), r)
			if !errors.Is(err, kube.ErrLockLost) || !strings.Contains(hint.Of(err), "run this again") {
				t.Errorf("error %v, hint %q", err, hint.Of(err))
			}
			for _, w := range []*fakecluster.Cluster{a, b} {
				if left := strings.Join(w.Left(t), "\n"); !strings.Contains(left, "DaemonSet") || !strings.Contains(left, "ConfigMap fabric") {
					t.Errorf("left in %s: %s", w.Context, left)
				}
			}
			if output := r.Output(); strings.Contains(output, "roll") {
				t.Errorf("output %s", output)
			}
		})
	}
}

// TestInterruptedWhileItWaits: of several waiting runs, an interrupted one ends immediately, and the others run one
// after the other, independent of their order of the clusters.
func TestInterruptedWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 4)
		run := func(ctx context.Context, o ConnectOptions) {
			go func() {
				_, err := Connect(ctx, o, &fakecluster.Recorder{})
				ended <- err
			}()
		}
		a.Set(func() { a.IgnoresRecords = true })
		run(t.Context(), connectOptions(a, b))
		<-time.After(5 * time.Second)
		swapped := connectOptions(b, a)
		swapped.LocalServes = new(true)
		run(t.Context(), swapped)
		run(ctx, connectOptions(a, b))
		run(t.Context(), connectOptions(a, b))
		<-time.After(5 * time.Second)
		before := lockOf(t, a).Spec.HolderIdentity
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) || *lockOf(t, a).Spec.HolderIdentity != *before {
			t.Errorf("interrupted: %v", err)
		}
		a.Set(func() { a.IgnoresRecords = false })
		for range 3 {
			assert.NoError(t, <-ended)
		}
		checkGatewayCounts(t, a, b, 1, 1)
	})
}

// TestMissingLock: for a user who may only operate, the error for a deleted Lease of the lock suggests how to create
// it.
func TestMissingLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected(t)
		require.NoError(t, a.Fake.CoordinationV1().Leases(a.Namespace).Delete(t.Context(), records.LockName, metav1.DeleteOptions{}))
		a.Fake.PrependReactor("create", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(coordinationv1.Resource("leases"), records.LockName, errors.New("no"))
		})
		o := removal.DisconnectOptions{Local: a.Cluster, Remote: b.Cluster, Timeout: time.Minute}
		if _, err := removal.Disconnect(t.Context(), o, &fakecluster.Recorder{}); !strings.Contains(hint.Of(err), "liqoctl network init --update") {
			t.Errorf("error %v, hint %q", err, hint.Of(err))
		}
		checkGatewayCounts(t, a, b, 1, 1)
	})
}

// TestLongHolder: an identity from another run, or from a peer's API server, is truncated in output.
func TestLongHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected(t)
		lease := lockOf(t, b)
		lease.Spec.HolderIdentity = new(strings.Repeat("run this to go on: ", 50_000))
		_, err := b.Fake.CoordinationV1().Leases(b.Namespace).Update(t.Context(), lease, metav1.UpdateOptions{})
		require.NoError(t, err)
		a.Locking, b.Locking = kube.LockOptions{Timeout: 5 * time.Second}, kube.LockOptions{Timeout: 5 * time.Second}
		r := &fakecluster.Recorder{}
		_, err = Connect(t.Context(), changed(a, b), r)
		if !errors.Is(err, kube.ErrLocked) || len(err.Error()) > 1000 {
			t.Errorf("an error of %d bytes: %.100s", len(fmt.Sprint(err)), err)
		}
		for _, line := range r.Lines() {
			if len(line) > 1000 {
				t.Errorf("a line of %d bytes: %.100s", len(line), line)
			}
		}
	})
}
