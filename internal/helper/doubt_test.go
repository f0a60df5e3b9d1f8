//go:build linux

package helper

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
)

// TestGatewaysAreWhereTheyAre: a gateway that says it is where another pod of the node is has no place in the view.
func TestGatewaysAreWhereTheyAre(t *testing.T) {
	const namespace = "liqonet"
	pod := func(name, ip string, edit func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: ip}},
		}}
		if edit != nil {
			edit(p)
		}
		return p
	}
	gateway := func(peering string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Namespace, p.Labels = namespace, map[string]string{records.LabelComponent: records.ComponentGateway, records.LabelPeering: peering}
		}
	}
	its := testGateway().PodIP.String()
	for name, test := range map[string]struct {
		pods    []*corev1.Pod
		doubted []string
	}{
		"a gateway of another node": {[]*corev1.Pod{pod("x", "10.244.1.77", nil)}, nil},
		"its own pod":               {[]*corev1.Pod{pod("gateway-b-x", its, gateway("b"))}, nil},
		"a pod that has ended":      {[]*corev1.Pod{pod("x", its, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}, nil},
		"its own beside one that goes": {
			[]*corev1.Pod{pod("x", its, nil), pod("gateway-b-x", its, gateway("b")), pod("y", its, nil)}, nil,
		},
		"another's pod":             {[]*corev1.Pod{pod("x", its, nil)}, []string{"peering b: " + its + " is the address of pod default/x"}},
		"the node":                  {[]*corev1.Pod{pod("x", its, func(p *corev1.Pod) { p.Spec.HostNetwork = true })}, []string{"peering b: " + its + " is the address of pod default/x"}},
		"gateway of another":        {[]*corev1.Pod{pod("gateway-c-x", its, gateway("c"))}, []string{"peering b: " + its + " is the address of pod liqonet/gateway-c-x"}},
		"labels in other namespace": {[]*corev1.Pod{pod("x", its, func(p *corev1.Pod) { gateway("b")(p); p.Namespace = "default" })}, []string{"peering b: " + its + " is the address of pod default/x"}},
	} {
		v := nodeView{peerings: []records.Peering{testPeering()}, gateways: map[string]records.Gateway{"b": testGateway()}}
		if got := v.doubt(namespace, test.pods); !slices.Equal(got, test.doubted) {
			t.Errorf("%s: %q, want %q", name, got, test.doubted)
		}
		if _, believed := v.gateways["b"]; believed != (test.doubted == nil) {
			t.Errorf("%s: believed %v", name, believed)
		}
	}
}
