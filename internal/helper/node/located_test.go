//go:build linux

package node

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/sample"
)

// gatewayOf returns the address of peering b's gateway in a view; the zero value: unknown.
func gatewayOf(v view) netip.Addr { return v.gateways[sample.FirstGateway("b")].PodIP }

// TestGatewaysArePods checks that a gateway's record counts only if the pod in it exists.
func TestGatewaysArePods(t *testing.T) {
	another := func(edit func(*corev1.Pod)) *corev1.Pod {
		p := sample.GatewayPod("b", sample.Gateway())
		p.Namespace, p.Name, p.Labels = "default", "x", nil
		if edit != nil {
			edit(p)
		}
		return p
	}
	at := func(a string) *corev1.Pod {
		return another(func(p *corev1.Pod) { p.Status.PodIP, p.Status.PodIPs = a, []corev1.PodIP{{IP: a}} })
	}
	without := func(p *corev1.Pod) { p.Status.PodIP, p.Status.PodIPs = "", nil }
	elsewhere := func(p *corev1.Pod) { p.Spec.NodeName = "n2" }
	onN2 := func(g *records.Gateway) { g.Node = "n2" }
	type test struct {
		pod   func(*corev1.Pod) // change of the gateway's pod
		write func(*records.Gateway)
		pods  []*corev1.Pod // on the node
		taken bool
	}
	// address is the address of a pod on another node that no other pod has, in record and status.
	address := func(a string) test {
		return test{
			pod: func(p *corev1.Pod) {
				elsewhere(p)
				p.Status.PodIP, p.Status.PodIPs = a, []corev1.PodIP{{IP: a}}
			},
			write: func(g *records.Gateway) { g.Node, g.PodIP = "n2", netip.MustParseAddr(a) },
		}
	}
	for what, test := range map[string]test{
		"its pod":                          {taken: true},
		"a pod of two families":            {pod: func(p *corev1.Pod) { p.Status.PodIPs = append([]corev1.PodIP{{IP: "fd00::9"}}, p.Status.PodIPs...) }, taken: true},
		"a pod that is ending":             {pod: func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, taken: true},
		"not known to the API yet":         {pod: without, taken: true},
		"not known, address of a pod":      {pod: without, pods: []*corev1.Pod{another(nil)}},
		"not known, of one that ended":     {pod: without, pods: []*corev1.Pod{another(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })}, taken: true},
		"not known, of the node":           {pod: without, write: func(g *records.Gateway) { g.PodIP = netip.MustParseAddr("172.31.0.1") }},
		"not known, of the API server":     {pod: without, write: func(g *records.Gateway) { g.PodIP = netip.MustParseAddr("172.31.0.250") }},
		"elsewhere, address of a pod here": {pod: elsewhere, write: onN2, pods: []*corev1.Pod{another(nil)}},
		"elsewhere, of one that ended": {pod: elsewhere, write: onN2,
			pods: []*corev1.Pod{another(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })}, taken: true},
		"elsewhere, in the range of this node": {pod: elsewhere, write: onN2, pods: []*corev1.Pod{at("10.244.1.200")}},
		"elsewhere, ranges are not known":      {pod: elsewhere, write: onN2, pods: []*corev1.Pod{at("10.244.1.200"), at("10.244.77.3")}, taken: true},
		"not known, out of the range": {pod: without, pods: []*corev1.Pod{at("10.244.1.200")},
			write: func(g *records.Gateway) { g.PodIP = netip.MustParseAddr("10.244.2.77") }},
		"not known, in the range":     {pod: without, pods: []*corev1.Pod{at("10.244.1.200")}, taken: true},
		"of the node":                 address("172.31.0.1"),
		"of another node":             address("172.31.0.77"),
		"of the API server":           address("172.31.0.250"),
		"of a Service":                address("10.96.0.10"),
		"of the overlay":              address("10.80.0.9"),
		"of a peer":                   address("10.11.3.4"),
		"another address":             {write: func(g *records.Gateway) { g.PodIP = netip.MustParseAddr("10.244.1.77") }},
		"another pod":                 {write: func(g *records.Gateway) { g.Pod = "gateway-b-y" }},
		"another node":                {write: func(g *records.Gateway) { g.Node = "n2" }},
		"no node":                     {write: func(g *records.Gateway) { g.Node = "" }, pod: func(p *corev1.Pod) { p.Spec.NodeName = "" }},
		"the other peering's gateway": {write: func(g *records.Gateway) { *g = sample.SecondGateway() }},
		"a pod of the other peering":  {pod: func(p *corev1.Pod) { p.Labels[records.LabelPeering] = "c" }},
		"a pod of another component":  {pod: func(p *corev1.Pod) { p.Labels[records.LabelComponent] = records.ComponentFabric }},
		"another namespace":           {pod: func(p *corev1.Pod) { p.Namespace = "default" }},
		"a pod that has failed":       {pod: func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }},
		"a pod that has ended":        {pod: func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }},
		"the node's network":          {pod: func(p *corev1.Pod) { p.Spec.HostNetwork = true }},
	} {
		t.Run(what, func(t *testing.T) {
			w := connected(t)
			fabric := sample.Fabric()
			fabric.NodeNetworks = parsed.Prefixes("172.31.0.0/24")
			w.put(sample.FabricMap(t, fabric))
			if test.pod != nil {
				test.pod(w.objects.gateways[0])
			}
			g := sample.Gateway()
			if test.write != nil {
				test.write(&g)
			}
			w.put(sample.GatewayMap(t, "b", g))
			w.objects.pods = test.pods
			v := w.view()
			if taken := gatewayOf(v) == g.PodIP; taken != test.taken || (!taken && gatewayOf(v).IsValid()) {
				t.Errorf("the gateway is at %s, faults %v", gatewayOf(v), w.faults)
			}
			if v.gateways[sample.FirstGateway("c")].PodIP != sample.SecondGateway().PodIP {
				t.Error("the other peering's gateway is lost")
			}
		})
	}
}

// TestGatewayAges checks that the address of a removed pod is used for a grace period, unless another pod has it.
func TestGatewayAges(t *testing.T) {
	w := connected(t)
	w.view()
	pod := w.objects.gateways[0]
	w.objects.gateways = w.objects.gateways[1:]
	w.objects.pods = append(w.objects.pods, pod) // the list of the node's pods is late
	v := w.view()
	w.objects.pods = nil
	if gatewayOf(v) != sample.Gateway().PodIP || v.aging != gatewayGrace || len(v.refused) > 0 {
		t.Errorf("the pod is gone: gateway %s, until %s, refused %v", gatewayOf(v), v.aging, v.refused)
	}
	w.now = w.now.Add(gatewayGrace - time.Second)
	if v = w.view(); gatewayOf(v) != sample.Gateway().PodIP || v.aging != time.Second {
		t.Errorf("a second before the end: gateway %s, until %s", gatewayOf(v), v.aging)
	}
	w.objects.gateways = append(w.objects.gateways, pod) // as after a late list
	if v = w.view(); gatewayOf(v) != sample.Gateway().PodIP || v.aging != 0 {
		t.Errorf("the pod is back: gateway %s, until %s", gatewayOf(v), v.aging)
	}
	w.objects.gateways = w.objects.gateways[:1]
	w.view()
	w.now = w.now.Add(gatewayGrace)
	if v = w.view(); gatewayOf(v).IsValid() || v.aging != 0 {
		t.Errorf("after the grace: gateway %s, until %s", gatewayOf(v), v.aging)
	}
	if !slices.Equal(v.names(), []string{"b", "c"}) {
		t.Errorf("served %v: the guard of b must stand", v.names())
	}
	w.objects.gateways = append(w.objects.gateways, pod)
	if v = w.view(); gatewayOf(v) != sample.Gateway().PodIP {
		t.Errorf("the pod is back after all: gateway %s", gatewayOf(v))
	}
	w.objects.gateways = w.objects.gateways[:1]
	taker := sample.GatewayPod("x", sample.Gateway())
	taker.Namespace, taker.Labels = "default", nil
	w.objects.pods = []*corev1.Pod{taker}
	if v = w.view(); gatewayOf(v).IsValid() {
		t.Errorf("another pod of the node has the address: gateway %s", gatewayOf(v))
	}
}

// TestGatewayIsRemoved checks that a removed gateway is not cached, even if its pod was removed first.
func TestGatewayIsRemoved(t *testing.T) {
	w := connected(t)
	one, two := sample.Peering(), sample.Peering()
	two.Gateways = append(two.Gateways, two.Gateways[0])
	id := records.GatewayID{Peering: "b", Number: 2}
	g := records.Gateway{Version: records.SchemaVersion, Pod: "gateway2-b-x", Node: "n1", PodIP: netip.MustParseAddr("10.244.1.12")}
	pod := sample.GatewayPod("b", g)
	pod.Labels[records.LabelGateway] = "2"
	gateways := w.objects.gateways
	w.put(sample.PeeringMap(t, two))
	w.put(sample.ConfigMap(t, id.Name(), g))
	w.objects.gateways = append(slices.Clone(gateways), pod)
	if v := w.view(); v.gateways[id].PodIP != g.PodIP {
		t.Fatalf("the second gateway is at %s, faults %v", v.gateways[id].PodIP, w.faults)
	}
	w.objects.gateways = gateways
	if v := w.view(); v.aging != gatewayGrace {
		t.Fatalf("its pod is gone: until %s", v.aging)
	}
	w.put(sample.PeeringMap(t, one))
	if v := w.view(); v.aging != 0 {
		t.Errorf("the peering has it no more: until %s", v.aging)
	}
}

// TestGatewayIsReplaced checks that a new gateway takes over as soon as it has written its location, in any order of
// the API server's events, and despite a record that is damaged in between.
func TestGatewayIsReplaced(t *testing.T) {
	w := connected(t)
	w.view()
	next := records.Gateway{Version: records.SchemaVersion, Pod: "gateway-b-y", Node: "n2", PodIP: netip.MustParseAddr("10.244.2.33")}
	w.objects.gateways[0].DeletionTimestamp = &metav1.Time{Time: w.now}
	w.put(sample.GatewayMap(t, "b", next))
	if v := w.view(); gatewayOf(v) != sample.Gateway().PodIP {
		t.Errorf("the record is here before its pod: gateway %s", gatewayOf(v))
	}
	pod := sample.GatewayPod("b", next)
	pod.Status.PodIP, pod.Status.PodIPs, pod.Status.Phase = "", nil, corev1.PodPending
	w.objects.gateways = append(w.objects.gateways, pod)
	if v := w.view(); gatewayOf(v) != next.PodIP || len(w.faults) > 0 {
		t.Errorf("the pod is here, its address not: gateway %s, faults %v", gatewayOf(v), w.faults)
	}
	w.put(sample.GatewayMap(t, "b", sample.Gateway())) // by the old one, as it ends
	if v := w.view(); gatewayOf(v) != next.PodIP {
		t.Errorf("the old gateway writes again: gateway %s", gatewayOf(v))
	}
	damaged := sample.GatewayMap(t, "b", next)
	damaged.Data[records.DataKey] = "x"
	w.put(damaged)
	for range 3 {
		w.now = w.now.Add(time.Hour)
		if v := w.view(); gatewayOf(v) != next.PodIP || v.refused["b"] == "" {
			t.Errorf("the record is damaged: gateway %s, refused %v", gatewayOf(v), v.refused)
		}
	}
	w.drop(sample.FirstGateway("b").Name())
	if v := w.view(); gatewayOf(v) != next.PodIP {
		t.Errorf("the record is deleted: gateway %s", gatewayOf(v))
	}
}

// TestGatewayRecordIsBounded checks that a gateway's record affects its own peer only.
func TestGatewayRecordIsBounded(t *testing.T) {
	w := connected(t)
	g := sample.Gateway()
	for endpoint, want := range map[string]bool{
		"192.0.2.7:51840": true, "10.11.3.4:51840": true, // outside, and in the peer's own ranges
		"10.12.3.4:51840": false, "10.72.0.3:51840": false, // in the ranges of another peer
	} {
		g.Endpoint = netip.MustParseAddrPort(endpoint)
		w.put(sample.GatewayMap(t, "b", g))
		if got := w.view().gateways[sample.FirstGateway("b")].Endpoint; (got == g.Endpoint) != want {
			t.Errorf("observed at %s: %v", endpoint, got)
		}
	}
	g.Endpoint = netip.MustParseAddrPort("192.0.2.7:51840")
	b := sample.Peering()
	second := b.Gateways[0].Tunnels[0]
	second.ListenPort = 51841
	for _, test := range []struct {
		tunnels      []records.Tunnel
		others, want string
	}{
		{b.Gateways[0].Tunnels, "10.11.3.4:1", "[]"}, // one tunnel has one endpoint
		{append(b.Gateways[0].Tunnels, second), "10.12.3.4:1 10.11.3.4:1 10.11.3.5:1", "[10.11.3.4:1]"},
	} {
		b.Gateways[0].Tunnels = test.tunnels
		w.put(sample.PeeringMap(t, b))
		g.OtherEndpoints = nil
		for text := range strings.FieldsSeq(test.others) {
			g.OtherEndpoints = append(g.OtherEndpoints, netip.MustParseAddrPort(text))
		}
		w.put(sample.GatewayMap(t, "b", g))
		if got := fmt.Sprint(w.view().gateways[sample.FirstGateway("b")].OtherEndpoints); got != test.want {
			t.Errorf("with %d tunnels, also observed at %s: %s, want %s", len(test.tunnels), test.others, got, test.want)
		}
	}
	w.drop(records.PeeringName("c"))
	g.Endpoint = netip.MustParseAddrPort("10.12.3.4:51840")
	w.put(sample.GatewayMap(t, "b", g))
	if got := w.view().gateways[sample.FirstGateway("b")].Endpoint; got.IsValid() {
		t.Errorf("heard among what is held back of another peering: %v", got)
	}
	g.PeerNodes = parsed.Addresses("10.71.0.3", "10.72.0.3", "10.71.200.1", "172.31.0.250", "8.8.8.8")
	w.put(sample.GatewayMap(t, "b", g))
	if got := w.view().gateways[sample.FirstGateway("b")].PeerNodes; !slices.Equal(got, parsed.Addresses("10.71.0.3")) {
		t.Errorf("nodes of the peer: %v", got)
	}
}

// TestLongNames checks that long values in a gateway's record do not affect readers or logs.
func TestLongNames(t *testing.T) {
	g := sample.Gateway()
	g.Pod = strings.Repeat("x", 1000)
	if _, err := records.Encode(g); err == nil {
		t.Error("a pod's name of 1,000 characters is accepted")
	}
}
