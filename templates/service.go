package templates

import (
	"errors"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/records"
)

// setService sets the fields of the Service, with a port for each tunnel. All pods have the labels of the selector; the
// name of the port selects the pod.
func setService(service *corev1.Service, s records.GatewaySettings, pods map[string]string, tunnels []records.TunnelID) error {
	if len(s.ServiceAnnotations) > 0 {
		service.Annotations = maps.Clone(s.ServiceAnnotations)
	}
	service.Spec.Type = corev1.ServiceType(*s.ServiceType)
	service.Spec.Selector = pods
	form := service.Spec.Ports[0]
	service.Spec.Ports = nil
	for _, t := range tunnels {
		port := form
		port.Name, port.TargetPort.StrVal = t.PortName(), t.PortName()
		number, err := t.Port(*s.ServicePort)
		nodePort, errNode := t.Port(*s.NodePort)
		if err := errors.Join(err, errNode); err != nil {
			return err
		}
		port.Port = int32(number)
		if *s.NodePort != 0 {
			port.NodePort = int32(nodePort)
		}
		service.Spec.Ports = append(service.Spec.Ports, port)
	}
	if !s.LoadBalancerIP.IsUnspecified() {
		service.Spec.LoadBalancerIP = s.LoadBalancerIP.String()
	}
	if *s.ServiceType != records.ClusterIP {
		// Every node accepts the tunnel's packets, so that the endpoint is unchanged when the gateway moves.
		service.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}
	return nil
}
