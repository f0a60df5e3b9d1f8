//go:build linux

package node

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/helper/cache"
	"liqonet.io/liqonet/internal/helper/claim"
	"liqonet.io/liqonet/internal/helper/liveness"
	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// leaseKeeper is the part of a node's helper that maintains its Lease, without a kernel.
type leaseKeeper struct {
	*loop
	t *testing.T
}

// keepLease starts a leaseKeeper for a node; its report is the MTU.
func keepLease(t *testing.T, client kubernetes.Interface, namespace, node string) leaseKeeper {
	t.Helper()
	env := helper.Env{Client: client, Namespace: namespace, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	m := cache.New(client)
	l := &loop{Helper: Helper{Env: env, Name: node}, lastValid: newLastValid(), wake: m.Changed}
	l.reports = publish.NewReporter(env.Log, sameButDrift, l.write, l.leaseHas)
	l.setUpStores(m)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	require.NoError(t, m.Run(ctx))
	f := sample.Fabric()
	all.Go(func() { l.reports.Run(ctx) })
	all.Go(func() {
		_ = helper.Loop(ctx, liveness.New(helper.Stuck), env.Log, func(ctx context.Context) error {
			node := cache.Named[*corev1.Node](l.nodes, "", node)
			if node == nil {
				return helper.ErrWaiting // as in a view
			}
			err := l.claim(ctx, view{node: node, fabric: &f})
			if err == nil {
				l.reports.Set(report{lease: l.claims.lease, node: records.Node{
					Version: records.SchemaVersion, Name: node.Name, Number: l.claims.number, MTU: 1500,
				}})
			}
			return err
		}, m.Changed)
	})
	return leaseKeeper{l, t}
}

// lease returns the node's Lease in the API server if it is correct; otherwise nil.
func (k leaseKeeper) lease() *coordinationv1.Lease {
	k.t.Helper()
	leases, err := k.Client.CoordinationV1().Leases(k.Namespace).List(k.t.Context(), metav1.ListOptions{LabelSelector: records.LabelComponent + "=" + records.ComponentNode})
	require.NoError(k.t, err)
	node, err := k.Client.CoreV1().Nodes().Get(k.t.Context(), k.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		k.t.Fatal(err)
	}
	for i := range leases.Items {
		l := &leases.Items[i]
		if node != nil && claim.Held(l, k.Name) && claim.Unchanged(l, node) {
			if n, err := records.DecodeReport(l.Name, l.Spec.HolderIdentity, l.Annotations[records.AnnotationNode]); err == nil && n.MTU == 1500 {
				return l
			}
		}
	}
	return nil
}

// await waits until the Lease is correct.
func (k leaseKeeper) await(what string, within time.Duration) *coordinationv1.Lease {
	k.t.Helper()
	var l *coordinationv1.Lease
	wait.Until(k.t, what, within, func() bool { l = k.lease(); return l != nil })
	return l
}

// TestDeletedLease checks that a deleted Lease is recreated immediately, with the same number and report.
func TestDeletedLease(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(sample.Node("n1"))
	k := keepLease(t, client, sample.Namespace, "n1")
	before := k.await("a Lease", sample.Patience)
	require.NoError(t, client.CoordinationV1().Leases(sample.Namespace).Delete(t.Context(), before.Name, metav1.DeleteOptions{}))
	if after := k.await("the Lease again", sample.Patience); after.Name != before.Name {
		t.Errorf("it is %s and was %s", after.Name, before.Name)
	}
}
