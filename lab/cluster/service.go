package cluster

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
)

// BalancedService is a Service of type LoadBalancer, as its provider sees it.
type BalancedService struct {
	Namespace, Name string
	Wanted          netip.Addr // spec.loadBalancerIP; not valid: any
	Address         netip.Addr // of its status; not valid: pending, or a name
	Hostname        string     // of its status
	Ports           []BalancedPort
	// HealthCheck is the port at which a node reports whether it has an endpoint of the Service; 0: all nodes accept
	// traffic.
	HealthCheck uint16
}

// BalancedPort is a port of the load balancer and its NodePort.
type BalancedPort struct {
	Protocol string // "tcp" or "udp"
	Port     uint16
	NodePort uint16
}

// serviceObject has the fields of a Service that matter to a load balancer.
type serviceObject struct {
	Metadata struct{ Namespace, Name string }
	Spec     struct {
		Type                  string
		LoadBalancerIP        netip.Addr `json:"loadBalancerIP"`
		ExternalTrafficPolicy string
		HealthCheckNodePort   uint16
		Ports                 []struct {
			Protocol string
			Port     uint16
			NodePort uint16
		}
	}
	Status serviceStatus
}

type serviceStatus struct {
	LoadBalancer struct {
		Ingress []serviceIngress `json:"ingress"`
	} `json:"loadBalancer"`
}

type serviceIngress struct {
	IP       netip.Addr `json:"ip,omitzero"`
	Hostname string     `json:"hostname,omitempty"`
}

// BalancedServices returns the Services of type LoadBalancer.
func (a *API) BalancedServices(ctx context.Context) ([]BalancedService, error) {
	var list struct{ Items []serviceObject }
	if err := a.do(ctx, http.MethodGet, "/api/v1/services", nil, &list); err != nil {
		return nil, fmt.Errorf("list Services: %w", err)
	}
	protocols := map[string]string{"TCP": "tcp", "UDP": "udp"}
	var all []BalancedService
	for _, o := range list.Items {
		if o.Spec.Type != "LoadBalancer" {
			continue
		}
		s := BalancedService{
			Namespace: o.Metadata.Namespace, Name: o.Metadata.Name, Wanted: o.Spec.LoadBalancerIP, HealthCheck: o.Spec.HealthCheckNodePort,
		}
		for _, in := range o.Status.LoadBalancer.Ingress {
			s.Address, s.Hostname = in.IP, in.Hostname
		}
		for _, p := range o.Spec.Ports {
			if protocol, ok := protocols[p.Protocol]; ok && p.NodePort != 0 {
				s.Ports = append(s.Ports, BalancedPort{Protocol: protocol, Port: p.Port, NodePort: p.NodePort})
			}
		}
		all = append(all, s)
	}
	return all, nil
}

// SetBalancer writes a load balancer's name into a Service's status, or its address if the name is empty.
func (a *API) SetBalancer(ctx context.Context, s BalancedService, address netip.Addr, hostname string) error {
	var patch struct {
		Status serviceStatus `json:"status"`
	}
	in := serviceIngress{Hostname: hostname}
	if hostname == "" {
		in.IP = address
	}
	patch.Status.LoadBalancer.Ingress = []serviceIngress{in}
	path := fmt.Sprintf("/api/v1/namespaces/%s/services/%s/status", s.Namespace, s.Name)
	if err := a.do(ctx, http.MethodPatch, path, patch, nil); err != nil {
		return fmt.Errorf("write the status of Service %s/%s: %w", s.Namespace, s.Name, err)
	}
	return nil
}
