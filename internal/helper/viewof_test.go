//go:build linux

package helper

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/serving"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/store"
)

// fakeCluster is the input of a node helper of cluster a, for tests to change.
type fakeCluster struct {
	t       *testing.T
	objects nodeObjects
	memory  *lastValid
	now     time.Time
	faults  []fault // of the last view
}

// newFakeCluster returns cluster a with these ConfigMaps, whose gateways run in their own pods.
func newFakeCluster(t *testing.T, maps ...*corev1.ConfigMap) *fakeCluster {
	node := testNode("n1")
	node.Spec.PodCIDRs = []string{"10.244.1.0/24"}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "172.31.0.1"}}
	w := &fakeCluster{t: t, memory: newLastValid(), now: time.Unix(1_700_000_000, 0), objects: nodeObjects{
		namespace: testNamespace, node: node, apiServers: parsed.Addresses("172.31.0.250", "10.96.0.1"),
		gateways: []*corev1.Pod{gatewayPod("b", testGateway()), gatewayPod("c", secondGateway())},
	}}
	w.put(maps...)
	return w
}

// gatewayPod returns the pod of a peering's gateway.
func gatewayPod(peering string, g records.Gateway) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: g.Pod, Labels: records.Identity{Component: records.ComponentGateway, Peering: peering}.Labels()},
		Spec:       corev1.PodSpec{NodeName: g.Node},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if g.PodIP.IsValid() {
		pod.Status.PodIP, pod.Status.PodIPs = g.PodIP.String(), []corev1.PodIP{{IP: g.PodIP.String()}}
	}
	return pod
}

// reserved returns the ConfigMap of the reservations for peerings.
func reserved(t *testing.T, peerings ...records.Peering) *corev1.ConfigMap {
	t.Helper()
	registry, err := ipam.New(ipam.DefaultPools()...)
	require.NoError(t, err)
	for _, p := range peerings {
		all := []ipam.Reservation{{Range: p.Peer.ExternalCIDR.Seen, Owner: ipam.Peering(p.Name), Purpose: ipam.PeerExternal, Real: p.Peer.ExternalCIDR.Real}}
		for _, m := range p.Peer.PodCIDRs {
			all = append(all, ipam.Reservation{Range: m.Seen, Owner: ipam.Peering(p.Name), Purpose: ipam.PeerPods, Real: m.Real})
		}
		for _, r := range all {
			require.NoError(t, registry.Reserve(r))
		}
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: records.IPAMName, Namespace: testNamespace, Labels: map[string]string{records.LabelComponent: records.ComponentIPAM}},
		Data:       map[string]string{records.DataKey: store.Encode(registry)},
	}
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
func (w *fakeCluster) view() nodeView {
	w.t.Helper()
	var v nodeView
	v, w.faults = w.memory.view(w.objects, w.now)
	return v
}

// wantFaults compares the faults of the last view with the expected parts of their texts, in any order.
func (w *fakeCluster) wantFaults(what string, parts ...string) {
	w.t.Helper()
	matched := len(parts) == len(w.faults)
	for _, part := range parts {
		matched = matched && slices.ContainsFunc(w.faults, func(f fault) bool { return strings.Contains(f.Err.Error(), part) })
	}
	if !matched {
		w.t.Errorf("%s: faults %v, want %q", what, w.faults, parts)
	}
}

// testNodeView returns the view of a node with one peering.
func testNodeView() nodeView {
	f := testFabric()
	return nodeView{
		fabric: &f, Choice: serving.Choice{Peerings: []records.Peering{testPeering()}}, gateways: map[records.GatewayID]records.Gateway{firstGateway("b"): testGateway()},
	}
}

// names returns the names of the peerings that a view serves.
func (v nodeView) names() []string {
	var names []string
	for _, p := range v.Peerings {
		names = append(names, p.Name)
	}
	return names
}

func viewOf(t *testing.T, maps ...*corev1.ConfigMap) nodeView {
	return newFakeCluster(t, maps...).view()
}
