package desired

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/kube/discover"
	"liqonet.io/liqonet/internal/records"
)

func TestChooseOverlay(t *testing.T) {
	node := func(name string, geneve, vxlan bool) records.Node {
		return records.Node{Name: name, Kernel: records.Capabilities{Release: "5.10", Geneve: geneve, VXLAN: vxlan}}
	}
	both, vxlan, geneve, none := node("both", true, true), node("v", false, true), node("g", true, false), node("none", false, false)
	tests := []struct {
		name          string
		nodes         []records.Node
		wish, decided records.OverlayKind
		want          records.OverlayKind
		err           string
	}{
		{"geneve is preferred", []records.Node{both, geneve}, "", "", records.Geneve, ""},
		{"one node without it", []records.Node{both, vxlan}, "", "", records.VXLAN, ""},
		{"what was decided stays", []records.Node{both}, "", records.VXLAN, records.VXLAN, ""},
		{"unless a node cannot", []records.Node{both, vxlan}, "", records.Geneve, records.VXLAN, ""},
		{"a wish", []records.Node{both}, records.VXLAN, records.Geneve, records.VXLAN, ""},
		{"a wish that cannot be", []records.Node{both, vxlan}, records.Geneve, "", "", "no geneve on v (kernel 5.10)"},
		{"nothing in common", []records.Node{vxlan, geneve}, "", "", "", "no geneve on v (kernel 5.10); no vxlan on g (kernel 5.10)"},
		{"nothing at all", []records.Node{none}, "", "", "", "none (kernel 5.10)"},
	}
	for _, tt := range tests {
		got, err := chooseOverlay(tt.nodes, tt.wish, tt.decided)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
}

func TestMTU(t *testing.T) {
	nodes := []records.Node{{MTU: 1500}, {MTU: 1450}, {MTU: 0}}
	f, err := WithReports(records.Fabric{MTU: 0}, nodes[:0], records.VXLAN, true)
	if err != nil || f.MTU != 0 {
		t.Errorf("no reports: %d, %v", f.MTU, err)
	}
	if got := smallestMTU(nodes); got != 1450 {
		t.Errorf("smallest %d", got)
	}
}

func TestServiceEndpoints(t *testing.T) {
	address := func(texts ...string) (all []netip.Addr) {
		for _, text := range texts {
			all = append(all, netip.MustParseAddr(text))
		}
		return all
	}
	nodes := []discover.Node{
		{Name: "n1", Ready: true, Internal: address("10.0.0.1"), External: address("192.0.2.1")},
		{Name: "n2", Ready: true, Internal: address("10.0.0.2")},
		{Name: "n3", Internal: address("10.0.0.3")},
		{Name: "n4", Ready: true},
	}
	service := func(kind corev1.ServiceType, nodePort int32, ingress ...corev1.LoadBalancerIngress) *corev1.Service {
		return &corev1.Service{
			Spec: corev1.ServiceSpec{Type: kind, ClusterIP: "10.96.0.9", Ports: []corev1.ServicePort{
				{Name: "wireguard", Port: 51840, NodePort: nodePort}, {Name: "tunnel-2-1", Port: 51848, NodePort: nodePort + 2},
			}},
			Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: ingress}},
		}
	}
	one, second := records.TunnelID{Server: 1, Client: 1}, records.TunnelID{Server: 2, Client: 1}
	tests := []struct {
		name    string
		svc     *corev1.Service
		tunnel  records.TunnelID
		wish    records.GatewaySettings
		want    []string
		missing string
	}{
		{"node port", service(corev1.ServiceTypeNodePort, 30000), one, records.GatewaySettings{}, []string{"192.0.2.1:30000", "10.0.0.2:30000"}, ""},
		{"node port to come", service(corev1.ServiceTypeNodePort, 0), one, records.GatewaySettings{}, nil, "no node port"},
		{"load balancer", service(corev1.ServiceTypeLoadBalancer, 0, corev1.LoadBalancerIngress{IP: "192.0.2.9"}, corev1.LoadBalancerIngress{Hostname: "lb.example"}), one,
			records.GatewaySettings{}, []string{"192.0.2.9:51840", "lb.example:51840"}, ""},
		{"load balancer to come", service(corev1.ServiceTypeLoadBalancer, 0), one, records.GatewaySettings{}, nil, "no load balancer address"},
		{"load balancer on this machine alone", service(corev1.ServiceTypeLoadBalancer, 0, corev1.LoadBalancerIngress{IP: "127.0.0.1"}), one, records.GatewaySettings{}, nil, "127.0.0.1 is no address"},
		{"load balancer with a usable name", service(corev1.ServiceTypeLoadBalancer, 0, corev1.LoadBalancerIngress{IP: "127.0.0.1", Hostname: "lb.example"}), one,
			records.GatewaySettings{}, []string{"lb.example:51840"}, ""},
		{"cluster IP", service(corev1.ServiceTypeClusterIP, 0), one, records.GatewaySettings{}, []string{"10.96.0.9:51840"}, ""},
		{"other address", service(corev1.ServiceTypeNodePort, 30000), one, records.GatewaySettings{EndpointHost: new("gw.example")}, []string{"gw.example:30000"}, ""},
		{"other address for a load balancer to come", service(corev1.ServiceTypeLoadBalancer, 0), one, records.GatewaySettings{EndpointHost: new("2001:db8::1")}, []string{"[2001:db8::1]:51840"}, ""},
		{"other port", service(corev1.ServiceTypeNodePort, 0), one, records.GatewaySettings{EndpointPort: new(uint16(4500))}, []string{"192.0.2.1:4500", "10.0.0.2:4500"}, ""},
		{"second gateway", service(corev1.ServiceTypeNodePort, 30000), second, records.GatewaySettings{}, []string{"10.0.0.2:30002", "192.0.2.1:30002"}, ""},
		{"second gateway, by the load balancer", service(corev1.ServiceTypeLoadBalancer, 0, corev1.LoadBalancerIngress{IP: "192.0.2.9"}), second,
			records.GatewaySettings{}, []string{"192.0.2.9:51848"}, ""},
		{"second gateway, other port", service(corev1.ServiceTypeNodePort, 0), second, records.GatewaySettings{EndpointPort: new(uint16(4500))}, []string{"10.0.0.2:4508", "192.0.2.1:4508"}, ""},
		{"third gateway", service(corev1.ServiceTypeNodePort, 30000), records.TunnelID{Server: 3, Client: 1}, records.GatewaySettings{}, nil, "no port tunnel-3-1"},
	}
	for _, tt := range tests {
		got, missing := serviceEndpoints(tt.svc, tt.tunnel, nodes, tt.wish)
		if diff := cmp.Diff(tt.want, got); diff != "" || (missing == "") != (tt.missing == "") || !strings.Contains(missing, tt.missing) {
			t.Errorf("%s: missing %q\n%s", tt.name, missing, diff)
		}
	}
	svc := tests[0].svc
	for have, want := range map[string]bool{"10.0.0.2:30000": true, "10.0.0.3:30000": true, "10.0.0.9:30000": false, "10.0.0.2:30001": false} {
		if got := endpointsUsable([]string{have}, svc, records.TunnelID{Server: 1, Client: 1}, nodes, records.GatewaySettings{}); got != want {
			t.Errorf("endpoint %s still good: %v", have, got)
		}
	}
	if endpointsUsable(nil, svc, records.TunnelID{Server: 1, Client: 1}, nodes, records.GatewaySettings{}) {
		t.Error("no endpoint is good")
	}
}
