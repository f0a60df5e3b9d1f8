package kube_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
)

// TestDeleteWithoutPodsOfLostNodes: the kubelet of a lost node does not terminate pods. Objects that wait for such pods
// would never be gone.
func TestDeleteWithoutPodsOfLostNodes(t *testing.T) {
	for name, c := range map[string]struct {
		ready    bool          // the pod's node is Ready
		since    time.Duration // time since the pod's grace period
		stranded bool
	}{
		"lost node":                          {since: time.Minute, stranded: true},
		"lost node, within the grace period": {since: -time.Hour},
		"node that is Ready":                 {ready: true, since: time.Minute},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			set := &appsv1.DaemonSet{ObjectMeta: ourMeta("node"), Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: ourMeta("").Labels}}}
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: records.DefaultNamespace, Labels: ourMeta("").Labels}}
			pod := &corev1.Pod{ObjectMeta: ourMeta("node-x7k2p"), Spec: corev1.PodSpec{NodeName: "n3"}}
			pod.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(-c.since)}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n3"}}
			if c.ready {
				node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			}
			cl, api := fakecluster.NewAPIServer(fakecluster.Config{Objects: []runtime.Object{set, namespace, pod, node}})
			// Like the garbage collector and the namespace controller: an object with pods remains.
			api.PrependReactor("delete", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				policy := action.(clienttesting.DeleteActionImpl).DeleteOptions.PropagationPolicy
				return action.GetResource().Resource == "namespaces" || *policy == metav1.DeletePropagationForeground, nil, nil
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := cl.Delete(ctx, set, namespace)
			if c.stranded != (err == nil) || err != nil && !strings.Contains(err.Error(), "DaemonSet liqonet/node to be gone: still there") {
				t.Errorf("%v", err)
			}
			left, err := kube.Find[*appsv1.DaemonSet](t.Context(), cl, "node")
			if err != nil || c.stranded != (left == nil) {
				t.Errorf("DaemonSet %v, %v", left, err)
			}
			var want []string
			if c.stranded {
				want = []string{"node-x7k2p (node n3)"}
			}
			if names, err := cl.Stranded(t.Context(), records.LabelComponent); err != nil || !slices.Equal(names, want) {
				t.Errorf("stranded %q, %v, want %q", names, err, want)
			}
		})
	}
}
