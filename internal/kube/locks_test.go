package kube_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// withID is a cluster with an ID. While absent is set, liqonet's namespace is not there, so that no Lease can be made.
func withID(id string, absent *atomic.Bool) (*kube.Cluster, *fake.Clientset) {
	c, api := fakecluster.NewAPIServer(fakecluster.Config{Context: "cluster " + id, Objects: []runtime.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: types.UID(id)}},
	}})
	api.PrependReactor("create", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return absent.Load(), nil, apierrors.NewNotFound(corev1.Resource("namespaces"), records.DefaultNamespace)
	})
	return c, api
}

// TestLocksInOrder has one run with the lock of the second of two clusters alone, because the first had no namespace,
// and another one with that of the first. The one lets its lock go before it waits for the other's: both get both.
func TestLocksInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var absent atomic.Bool
		a, _ := withID("1", &absent)
		b, _ := withID("2", new(atomic.Bool))
		a1, b1, a2, b2 := a, b, a, b
		first, second := kube.NewLocks(&a1, &b1), kube.NewLocks(&a2, &b2)
		note := func(string) {}
		absent.Store(true)
		require.NoError(t, first.Await(t.Context(), note))
		absent.Store(false)
		ended := make(chan error, 1)
		go func() {
			err := second.Await(t.Context(), note)
			<-time.After(time.Second)
			second.Release(t.Context())
			ended <- err
		}()
		<-time.After(10 * time.Second)
		begun := time.Now()
		if err := first.Await(t.Context(), note); err != nil || time.Since(begun) > time.Minute {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
		first.Release(t.Context())
		assert.NoError(t, <-ended)
	})
}

// TestLockOfNewNamespace: where a cluster had no namespace when a run first wrote, its lock is taken once it has one.
// If another run has it then, the run does not write.
func TestLockOfNewNamespace(t *testing.T) {
	var absent atomic.Bool
	a, api := withID("1", &absent)
	b, _ := withID("2", new(atomic.Bool))
	locks := kube.NewLocks(&a, &b)
	ctx := locks.Begin(t.Context())
	defer locks.Release(t.Context())
	absent.Store(true)
	_, err := b.Apply(ctx, fabric("x"))
	require.NoError(t, err)
	absent.Store(false)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: records.LockName, Namespace: records.DefaultNamespace},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("another")},
	}
	_, err = api.CoordinationV1().Leases(lease.Namespace).Create(t.Context(), lease, metav1.CreateOptions{})
	require.NoError(t, err)
	if _, err := a.Apply(ctx, fabric("x")); err == nil {
		t.Error("the run writes to a cluster whose lock another one has")
	}
	if _, err := api.CoreV1().ConfigMaps(records.DefaultNamespace).Get(t.Context(), records.FabricName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it was written: %v", err)
	}
}

// TestNamespaceGoesWhileRunCompares checks that a run begins again if another one removed the namespace, with the
// Lease, after this one had read its facts.
func TestNamespaceGoesWhileRunCompares(t *testing.T) {
	a, _ := withID("1", new(atomic.Bool))
	locks := kube.NewLocks(&a)
	ctx := locks.Begin(t.Context())
	defer locks.Release(t.Context())
	refused := apierrors.NewForbidden(corev1.Resource("configmaps"), records.FabricName, errors.New("it is being terminated"))
	if locks.Stale(ctx, fmt.Errorf("compare: %w", refused)) {
		t.Error("stale, though the namespace stays")
	}
	refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	if !locks.Stale(ctx, fmt.Errorf("compare: %w", refused)) {
		t.Error("the run ends with the error of a namespace that another run removes")
	}
	gone := fmt.Errorf("compare: %w", apierrors.NewNotFound(corev1.Resource("namespaces"), records.DefaultNamespace))
	if !locks.Stale(ctx, gone) {
		t.Error("the run ends with the error of a namespace that another run has removed")
	}
	if locks.Stale(ctx, gone) {
		t.Error("the run begins again and again")
	}
	if locks.Stale(ctx, fmt.Errorf("compare: %w", apierrors.NewNotFound(corev1.Resource("configmaps"), "x"))) {
		t.Error("stale, though only a ConfigMap is missing")
	}
}

// TestUnseenRun checks that a run which found no Lease begins again, once, if an object is not as it was read: another
// run may have come and gone. With a Lease, the version of that one tells.
func TestUnseenRun(t *testing.T) {
	for _, leased := range []bool{false, true} {
		a, api := withID("1", new(atomic.Bool))
		if leased {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: records.LockName, Namespace: records.DefaultNamespace}}
			_, err := api.CoordinationV1().Leases(lease.Namespace).Create(t.Context(), lease, metav1.CreateOptions{})
			require.NoError(t, err)
		}
		locks := kube.NewLocks(&a)
		ctx := locks.Begin(t.Context())
		require.NoError(t, a.Reach(ctx))
		for _, want := range []bool{!leased, false} {
			if got := locks.Stale(ctx, fmt.Errorf("compare: %w", kube.ErrConflict)); got != want {
				t.Errorf("with a Lease: %v: begins again: %v, want %v", leased, got, want)
			}
		}
		locks.Release(t.Context())
	}
}

// TestWaitForTerminatingNamespace checks that a run that waits for the deletion of a namespace reports that, once.
func TestWaitForTerminatingNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, api := withID("1", new(atomic.Bool))
		api.PrependReactor("create", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			refused := apierrors.NewForbidden(corev1.Resource("leases"), records.LockName, errors.New("it is being terminated"))
			refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
			return true, nil, refused
		})
		locks := kube.NewLocks(&a)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		var notes []string
		err := locks.Await(ctx, func(text string) { notes = append(notes, text) })
		want := `cluster "cluster 1": namespace liqonet is being deleted: waiting`
		if !errors.Is(err, context.DeadlineExceeded) || len(notes) != 1 || notes[0] != want {
			t.Errorf("error %v, notes %q, want %q", err, notes, want)
		}
	})
}
