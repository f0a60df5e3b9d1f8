package templates

import (
	"errors"
	"maps"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"liqonet.io/liqonet/internal/records"
)

// services renders the Services of a server's gateways and the Ingress: those that the settings want.
func (v GatewayValues) services(r *reader) (objects []Object, err error) {
	s := v.Settings.Complete()
	if s.UsesUDP() {
		var ports []corev1.ServicePort
		for i := range v.Gateways {
			for j := range v.Tunnels {
				port, err := tunnelPort(records.TunnelID{Server: i + 1, Client: j + 1}, s)
				if err != nil {
					return nil, err
				}
				ports = append(ports, port)
			}
		}
		objects = append(objects, v.service(r, records.ServiceName(v.Peering), s, ports))
	}
	if !s.CarriesWebSocket() {
		return objects, nil
	}
	first := int32(*s.WebSocketPort)
	if *s.Ingress != "" {
		first = portOfIngress
	}
	var ports []corev1.ServicePort
	for i := range v.Gateways {
		name := records.WebSocketPortName(i + 1)
		port := corev1.ServicePort{Name: name, Protocol: corev1.ProtocolTCP, Port: first + int32(i)}
		port.TargetPort = intstr.FromString(name)
		ports = append(ports, port)
	}
	single := s
	if s.UsesUDP() { // the load balancer gives an address to one Service
		single.LoadBalancerIP = records.GatewaySettings{}.Complete().LoadBalancerIP
	}
	if *s.Ingress == "" {
		return append(objects, v.service(r, records.WebSocketName(v.Peering), single, ports)), nil
	}
	single.ServiceType = new(records.ClusterIP)
	return append(objects, v.service(r, records.WebSocketName(v.Peering), single, ports), v.ingress(r, s)), nil
}

// portOfIngress is the first port of the Service behind an Ingress. Traefik uses TLS to a Service's port 443
// (getProtocol in its pkg/provider/kubernetes/ingress).
const portOfIngress = 80

// tunnelPort returns the port of a tunnel.
func tunnelPort(t records.TunnelID, s records.GatewaySettings) (port corev1.ServicePort, err error) {
	port = corev1.ServicePort{Name: t.PortName(), Protocol: corev1.ProtocolUDP}
	port.TargetPort = intstr.FromString(t.PortName())
	number, err := t.Port(*s.ServicePort)
	nodePort, errNode := t.Port(*s.NodePort)
	port.Port = int32(number)
	if *s.NodePort != 0 {
		port.NodePort = int32(nodePort)
	}
	return port, errors.Join(err, errNode)
}

// service renders a Service. All pods have the labels of the selector; the name of the port selects the pod.
func (v GatewayValues) service(r *reader, name string, s records.GatewaySettings, ports []corev1.ServicePort) *corev1.Service {
	service := read[corev1.Service](r, "gateway/service.yaml")
	identify(service, v.Namespace, name, v.labels())
	if len(s.ServiceAnnotations) > 0 {
		service.Annotations = maps.Clone(s.ServiceAnnotations)
	}
	service.Spec.Type = corev1.ServiceType(*s.ServiceType)
	service.Spec.Selector = v.labels()
	service.Spec.Ports = ports
	if !s.LoadBalancerIP.IsUnspecified() && *s.ServiceType == records.LoadBalancer {
		service.Spec.LoadBalancerIP = s.LoadBalancerIP.String()
	}
	if *s.ServiceType != records.ClusterIP {
		// Every node accepts the tunnel's packets, so that the endpoint is unchanged when the gateway moves.
		service.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
		if s.Plain() { // the sources of packets count, and the others' nodes would replace them
			service.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		}
	}
	return service
}

// ingress renders the Ingress, with a path for each gateway. Its Secret for TLS is made by the user, or by a program
// that its annotations are for; without it, the controller uses its own certificate.
func (v GatewayValues) ingress(r *reader, s records.GatewaySettings) *networkingv1.Ingress {
	ingress := read[networkingv1.Ingress](r, "gateway/ingress.yaml")
	name := records.WebSocketName(v.Peering)
	identify(ingress, v.Namespace, name, v.labels())
	if len(s.IngressAnnotations) > 0 {
		ingress.Annotations = maps.Clone(s.IngressAnnotations)
	}
	if *s.IngressClass != "" {
		ingress.Spec.IngressClassName = s.IngressClass
	}
	ingress.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{*s.Ingress}, SecretName: name}}
	rule := networkingv1.HTTPIngressRuleValue{}
	for i := range v.Gateways {
		backend := &networkingv1.IngressServiceBackend{Name: name, Port: networkingv1.ServiceBackendPort{Name: records.WebSocketPortName(i + 1)}}
		rule.Paths = append(rule.Paths, networkingv1.HTTPIngressPath{
			Path: records.WebSocketPath(v.Peering, i+1), PathType: new(networkingv1.PathTypeExact), Backend: networkingv1.IngressBackend{Service: backend},
		})
	}
	ingress.Spec.Rules = []networkingv1.IngressRule{{Host: *s.Ingress, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &rule}}}
	return ingress
}
