//go:build linux

package helper

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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"liqonet.io/liqonet/internal/helper/cache"
	"liqonet.io/liqonet/internal/helper/claim"
	"liqonet.io/liqonet/internal/helper/liveness"
	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// leaseKeeper is the part of a node's helper that maintains its Lease, without a kernel.
type leaseKeeper struct {
	*nodeLoop
	t *testing.T
}

// keepLease starts a leaseKeeper for a node; its report is the MTU.
func keepLease(t *testing.T, client kubernetes.Interface, namespace, node string) leaseKeeper {
	t.Helper()
	env := Env{Client: client, Namespace: namespace, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	m := cache.New(client)
	l := &nodeLoop{Node: Node{Env: env, Name: node}, lastValid: newLastValid(), wake: m.Changed}
	l.reports = publish.NewReporter(env.Log, sameButDrift, l.write, l.leaseHas)
	l.setUpStores(m)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	require.NoError(t, m.Run(ctx))
	f := testFabric()
	all.Go(func() { l.reports.Run(ctx) })
	all.Go(func() {
		_ = loop(ctx, liveness.New(stuck), env.Log, func(ctx context.Context) error {
			err := l.claim(ctx, nodeView{fabric: &f})
			if err == nil {
				l.reports.Set(nodeReport{lease: l.claims.lease, node: records.Node{
					Version: records.SchemaVersion, Name: node, Internal: l.claims.internal, MTU: 1500,
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

// TestDeletedLease checks that a deleted Lease is recreated immediately, with the same address and report.
func TestDeletedLease(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(testNode("n1"))
	k := keepLease(t, client, testNamespace, "n1")
	before := k.await("a Lease", patience)
	require.NoError(t, client.CoordinationV1().Leases(testNamespace).Delete(t.Context(), before.Name, metav1.DeleteOptions{}))
	if after := k.await("the Lease again", patience); after.Name != before.Name {
		t.Errorf("it is %s and was %s", after.Name, before.Name)
	}
}

// gatewayWriters is the part of a gateway's helper that writes its records, without a kernel.
func gatewayWriters(t *testing.T, client kubernetes.Interface, namespace string) *gatewayLoop {
	t.Helper()
	env := Env{Client: client, Namespace: namespace, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	m := cache.New(client)
	l := &gatewayLoop{Gateway: Gateway{Env: env, ID: firstGateway("b")}, echoes: &gatewayEchoes{}}
	l.newReporters()
	l.setUpStores(m)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	require.NoError(t, m.Run(ctx))
	all.Go(func() { l.locations.Run(ctx) })
	all.Go(func() { l.statuses.Run(ctx) })
	all.Go(func() {
		tick := time.NewTicker(tunnelEvery)
		defer tick.Stop()
		for {
			l.locations.Set(testGateway())
			s := testStatus()
			s.Time = now() // as in each report
			l.statuses.Set(gatewayReport{Status: s})
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return l
}

// gatewaysObjects returns the empty objects that connect creates for a gateway.
func gatewaysObjects(t *testing.T, namespace string) []*corev1.ConfigMap {
	location, status := gatewayMap(t, "b", testGateway()), configMap(t, firstGateway("b").StatusName(), testStatus())
	for _, cm := range []*corev1.ConfigMap{location, status} {
		cm.Namespace, cm.Data = namespace, nil
	}
	return []*corev1.ConfigMap{location, status}
}

// TestAlteredGatewayObjects checks that external changes of a gateway's objects or their labels are undone soon.
func TestAlteredGatewayObjects(t *testing.T) {
	t.Parallel()
	healGateway(t, fake.NewClientset(), testNamespace, patience)
}

// healGateway creates the objects of a gateway and alters them in every way: its helper undoes that within a time.
func healGateway(t *testing.T, client kubernetes.Interface, namespace string, within time.Duration) {
	t.Helper()
	maps := client.CoreV1().ConfigMaps(namespace)
	for _, cm := range gatewaysObjects(t, namespace) {
		_, err := maps.Create(t.Context(), cm, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	gatewayWriters(t, client, namespace)
	good := func(name string) bool {
		cm, err := maps.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		if name == (firstGateway("b").Name()) {
			_, err = cache.Record[records.Gateway](cm)
		} else {
			_, err = cache.Record[records.Status](cm)
		}
		return err == nil
	}
	for _, name := range []string{firstGateway("b").Name(), firstGateway("b").StatusName()} {
		for _, patch := range []string{
			`{"data":null}`, `{"data":{"record":"x"}}`, `{"metadata":{"labels":null}}`, `{"metadata":{"labels":{"liqonet.io/component":"fabric"}}}`,
			`{"metadata":{"labels":{"liqonet.io/peering":"c"}}}`,
		} {
			wait.Until(t, name+" before", patience, func() bool { return good(name) })
			_, err := maps.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			require.NoError(t, err)
			took := wait.Until(t, name+" after "+patch, within, func() bool { return good(name) })
			t.Logf("%s after %s: %s", name, patch, took.Round(time.Millisecond))
		}
	}
}
