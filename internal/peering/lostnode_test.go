package peering

import (
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// neverEnds keeps a deleted Deployment of a gateway, because its pod is on a lost node.
func neverEnds(w *fakecluster.Cluster, id records.GatewayID) {
	w.Fake.PrependReactor("delete", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
		o := action.(clienttesting.DeleteActionImpl)
		if o.GetName() != id.Name() || *o.DeleteOptions.PropagationPolicy != metav1.DeletePropagationForeground {
			return false, nil, nil
		}
		now := metav1.Now()
		object, err := w.Fake.Tracker().Get(action.GetResource(), w.Namespace, id.Name())
		if err != nil {
			return true, nil, err
		}
		d := object.(*appsv1.Deployment).DeepCopy()
		d.DeletionTimestamp, d.Finalizers = &now, []string{metav1.FinalizerDeleteDependents}
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: id.Name() + "-lost", Namespace: w.Namespace, Labels: d.Spec.Template.Labels, DeletionTimestamp: &now},
			Spec:       corev1.PodSpec{NodeName: "lost"},
		}
		if err := w.Fake.Tracker().Add(pod); err != nil {
			return true, nil, err
		}
		return true, nil, w.Fake.Tracker().Update(action.GetResource(), d, w.Namespace)
	})
}

// TestGatewayOnLostNode: all objects of a removed gateway are deleted, although its pod never terminates.
func TestGatewayOnLostNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		fakecluster.Must(t, Connect, gatewayOptions(a, b, 2, 2))
		for _, w := range []*fakecluster.Cluster{a, b} {
			w.Set(func() { w.Interval = slowly })
		}
		lost := records.GatewayID{Peering: "b", Number: 2}
		neverEnds(a, lost)
		o := gatewayOptions(a, b, 1, 1)
		o.Timeout = 2 * time.Minute
		fakecluster.Must(t, Connect, o)
		objects, err := a.List(t.Context(), inventory.PeeringSelector("b"))
		require.NoError(t, err)
		for _, o := range objects {
			if surplus(o, 1) && o.GetDeletionTimestamp() == nil {
				t.Errorf("%T %s is left", o, o.GetName())
			}
		}
		if n := len(b.Peering(t).Gateways); n != 1 {
			t.Errorf("cluster b has %d gateways", n)
		}
	})
}
