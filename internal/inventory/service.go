package inventory

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// ServiceValues returns the values from which the Service of a server's gateways was created, without additions of the
// API server or a provider.
func ServiceValues(svc *corev1.Service) (templates.ServiceValues, error) {
	v := templates.ServiceValues{Type: svc.Spec.Type}
	fields, err := kube.Applied(svc)
	if err != nil {
		return v, err
	}
	ours := func(path ...string) bool {
		_, found, _ := unstructured.NestedFieldNoCopy(fields, path...)
		return found
	}
	for name, value := range svc.Annotations {
		if ours("f:metadata", "f:annotations", "f:"+name) {
			if v.Annotations == nil {
				v.Annotations = make(map[string]string)
			}
			v.Annotations[name] = value
		}
	}
	if v.Type == corev1.ServiceTypeLoadBalancer && ours("f:spec", "f:loadBalancerIP") {
		v.LoadBalancerIP, _ = netip.ParseAddr(svc.Spec.LoadBalancerIP) // liqoctl writes valid addresses only
	}
	for _, port := range svc.Spec.Ports {
		if port.Name != (records.TunnelID{Server: 1, Client: 1}).PortName() {
			continue
		}
		v.Port = uint16(port.Port)
		if v.Type != corev1.ServiceTypeClusterIP && ours("f:spec", "f:ports", fmt.Sprintf(`k:{"port":%d,"protocol":"UDP"}`, port.Port), "f:nodePort") {
			v.NodePort = uint16(port.NodePort)
		}
	}
	return v, nil
}
