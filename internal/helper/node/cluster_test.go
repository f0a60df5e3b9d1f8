//go:build linux

package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/serving"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/sample"
)

// fakeCluster is the input of a node helper of cluster a, for tests to change.
type fakeCluster struct {
	t       *testing.T
	objects objects
	memory  *lastValid
	now     time.Time
	faults  []serving.Fault // of the last view
}

// newFakeCluster returns cluster a with these ConfigMaps, whose gateways run in their own pods.
func newFakeCluster(t *testing.T, maps ...*corev1.ConfigMap) *fakeCluster {
	node := sample.Node("n1")
	node.Spec.PodCIDRs = []string{"10.244.1.0/24"}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "172.31.0.1"}}
	w := &fakeCluster{t: t, memory: newLastValid(), now: time.Unix(1_700_000_000, 0), objects: objects{
		namespace: sample.Namespace, node: node, apiServers: parsed.Addresses("172.31.0.250", "10.96.0.1"),
		gateways: []*corev1.Pod{sample.GatewayPod("b", sample.Gateway()), sample.GatewayPod("c", sample.SecondGateway())},
	}}
	w.put(maps...)
	return w
}

// put creates or replaces ConfigMaps.
func (w *fakeCluster) put(maps ...*corev1.ConfigMap) {
	for _, cm := range maps {
		w.drop(cm.Name)
		switch cm.Name {
		case records.FabricName:
			w.objects.fabric = cm
		case records.IPAMName:
			w.objects.ipam = cm
		default:
			w.objects.maps = append(w.objects.maps, cm)
		}
	}
}

// drop deletes a ConfigMap.
func (w *fakeCluster) drop(name string) {
	switch name {
	case records.FabricName:
		w.objects.fabric = nil
	case records.IPAMName:
		w.objects.ipam = nil
	}
	w.objects.maps = slices.DeleteFunc(w.objects.maps, func(cm *corev1.ConfigMap) bool { return cm.Name == name })
}

// view returns the helper's view of the cluster.
func (w *fakeCluster) view() view {
	w.t.Helper()
	var v view
	v, w.faults = w.memory.view(w.objects, w.now)
	return v
}

// wantFaults compares the faults of the last view with the expected parts of their texts, in any order.
func (w *fakeCluster) wantFaults(what string, parts ...string) {
	w.t.Helper()
	matched := len(parts) == len(w.faults)
	for _, part := range parts {
		matched = matched && slices.ContainsFunc(w.faults, func(f serving.Fault) bool { return strings.Contains(f.Err.Error(), part) })
	}
	if !matched {
		w.t.Errorf("%s: faults %v, want %q", what, w.faults, parts)
	}
}

// oneView returns the view of a node with one peering.
func oneView() view {
	f := sample.Fabric()
	return view{
		fabric: &f, Choice: serving.Choice{Peerings: []records.Peering{sample.Peering()}}, gateways: map[records.GatewayID]records.Gateway{sample.FirstGateway("b"): sample.Gateway()},
	}
}

// names returns the names of the peerings that a view serves.
func (v view) names() []string {
	var names []string
	for _, p := range v.Peerings {
		names = append(names, p.Name)
	}
	return names
}

func viewOf(t *testing.T, maps ...*corev1.ConfigMap) view {
	return newFakeCluster(t, maps...).view()
}
