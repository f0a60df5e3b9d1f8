package templates

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/records"
)

// ServiceValues describe the Service of a server's gateways.
type ServiceValues struct {
	Type corev1.ServiceType // NodePort, LoadBalancer or ClusterIP
	// UDP, of the first tunnel; the ports of other tunnels are numbered by their index; 0 is TunnelPort.
	Port           uint16
	NodePort       uint16     // likewise; 0: the cluster chooses
	LoadBalancerIP netip.Addr // the zero value: the provider chooses
	Annotations    map[string]string
}

// Validate rejects conflicting values.
func (v ServiceValues) Validate() error {
	types := []corev1.ServiceType{corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer}
	switch {
	case !slices.Contains(types, v.Type):
		return fmt.Errorf("service type %q: want LoadBalancer, NodePort or ClusterIP", v.Type)
	case v.NodePort != 0 && v.Type == corev1.ServiceTypeClusterIP:
		return fmt.Errorf("NodePort %d: a Service of type ClusterIP has no NodePort", v.NodePort)
	case v.LoadBalancerIP.IsValid() && v.Type != corev1.ServiceTypeLoadBalancer:
		return fmt.Errorf("load balancer address %s: a Service of type %s has no load balancer", v.LoadBalancerIP, v.Type)
	}
	return validateAnnotations(v.Annotations)
}

// PortOf returns the port of a tunnel, given that of the first one; an error if it would exceed the range of ports.
func PortOf(first uint16, t records.TunnelID) (uint16, error) {
	p := int(first) + t.Index()
	if p > maxPort {
		return 0, fmt.Errorf("port %d of the tunnel of gateways %d and %d: there is none above %d: begin below %d", p, t.Server, t.Client, maxPort, first)
	}
	return uint16(p), nil
}

const maxPort = 1<<16 - 1

// set sets the fields of the Service, with a port for each tunnel. All pods have the labels of the selector; the name
// of the port selects the pod.
func (v ServiceValues) set(service *corev1.Service, pods map[string]string, tunnels []records.TunnelID) error {
	service.Annotations = maps.Clone(v.Annotations)
	service.Spec.Type = v.Type
	service.Spec.Selector = pods
	form := service.Spec.Ports[0]
	service.Spec.Ports = nil
	for _, t := range tunnels {
		port := form
		port.Name, port.TargetPort.StrVal = t.PortName(), t.PortName()
		number, err := PortOf(cmp.Or(v.Port, TunnelPort), t)
		if err != nil {
			return err
		}
		port.Port = int32(number)
		if v.NodePort != 0 {
			if number, err = PortOf(v.NodePort, t); err != nil {
				return err
			}
			port.NodePort = int32(number)
		}
		service.Spec.Ports = append(service.Spec.Ports, port)
	}
	if v.LoadBalancerIP.IsValid() {
		service.Spec.LoadBalancerIP = v.LoadBalancerIP.String()
	}
	if v.Type != corev1.ServiceTypeClusterIP {
		// Every node accepts the tunnel's packets, so that the endpoint is unchanged when the gateway moves.
		service.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}
	return nil
}
