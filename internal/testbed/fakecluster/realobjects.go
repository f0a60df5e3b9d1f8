//go:build lab

package fakecluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"liqonet.io/liqonet/internal/testbed/require"
)

// restless are the resources that change without a writer of the test.
var restless = map[string]bool{"events": true, "leases": true, "componentstatuses": true}

// Objects returns all objects of a cluster that skip does not exclude, as text by resource and name. It leaves out what
// changes without a writer of the test.
func (r *Real) Objects(t *testing.T, skip func(namespace, name string) bool) map[string]string {
	t.Helper()
	lists, err := discovery.ServerPreferredResources(r.Kube.Discovery())
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(r.Config)
	require.NoError(t, err)
	all := map[string]string{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		for _, resource := range list.APIResources {
			if restless[resource.Name] || !strings.Contains(strings.Join(resource.Verbs, " "), "list") {
				continue
			}
			found, err := client.Resource(version.WithResource(resource.Name)).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatalf("list %s of cluster %s: %v", resource.Name, r.Name, err)
			}
			for i := range found.Items {
				if o := &found.Items[i]; !skip(o.GetNamespace(), o.GetName()) {
					all[fmt.Sprintf("%s %s/%s", resource.Name, o.GetNamespace(), o.GetName())] = settledText(t, o)
				}
			}
		}
	}
	return all
}

// settledText returns an object without what changes without a writer of the test.
func settledText(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	o.SetResourceVersion("")
	o.SetManagedFields(nil)
	switch o.GetKind() {
	case "Node":
		settleNode(t, o)
	case "ClusterRole": // a controller fills those that aggregate others, some seconds after a cluster has started
		if o.Object["aggregationRule"] != nil {
			unstructured.RemoveNestedField(o.Object, "rules")
		}
	case "Namespace": // of one that is being deleted: the last findings of its controller
		unstructured.RemoveNestedField(o.Object, "status", "conditions")
	}
	text, err := yaml.Marshal(o.Object)
	require.NoError(t, err)
	return string(text)
}

// settleNode removes a node's heartbeats, and the taints with which a controller follows its conditions.
func settleNode(t *testing.T, node *unstructured.Unstructured) {
	t.Helper()
	conditions, _, err := unstructured.NestedSlice(node.Object, "status", "conditions")
	require.NoError(t, err)
	for _, c := range conditions {
		delete(c.(map[string]any), "lastHeartbeatTime")
		delete(c.(map[string]any), "lastTransitionTime") // heartbeats of a busy machine may be late
	}
	require.NoError(t, unstructured.SetNestedSlice(node.Object, conditions, "status", "conditions"))
	taints, _, err := unstructured.NestedSlice(node.Object, "spec", "taints")
	require.NoError(t, err)
	taints = slices.DeleteFunc(taints, func(taint any) bool { return taint.(map[string]any)["key"] == corev1.TaintNodeNotReady })
	unstructured.RemoveNestedField(node.Object, "spec", "taints")
	if len(taints) > 0 {
		require.NoError(t, unstructured.SetNestedSlice(node.Object, taints, "spec", "taints"))
	}
}
