package peering

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// settings is how a peering was made, as far as its objects show: a connect with these values changes nothing of it.
type settings struct {
	local, remote sideSettings
	localServes   bool
	service       *corev1.Service // of the server's gateways
	values        templates.ServiceValues
}

// sideSettings is the part of one side.
type sideSettings struct {
	peering  records.Peering
	fabric   records.Fabric
	gateways int    // without temporary ones
	image    string // of the gateways
}

// side is the side of a connect that leaves it as it stands. Its ranges are known.
func (s sideSettings) side(c *cluster.Cluster) Side {
	return Side{Cluster: c, Gateways: s.gateways, Overrides: cluster.Overrides{
		PodCIDRs: s.fabric.PodCIDRs, ServiceCIDRs: s.fabric.ServiceCIDRs, NodeNetworks: s.fabric.NodeNetworks,
	}}
}

// settings reads how the peering was made; both ends have found it.
func (c *connector) settings(ctx context.Context) (s settings, err error) {
	if c.local.role == c.remote.role {
		return s, hint.With(fmt.Errorf("both clusters have the role %s in their peering", c.local.role), "liqoctl network connect --update")
	}
	s.localServes = c.local.role == records.Server
	if s.local, err = c.local.settings(ctx); err != nil {
		return s, err
	}
	if s.remote, err = c.remote.settings(ctx); err != nil {
		return s, err
	}
	server := c.remote
	if s.localServes {
		server = c.local
	}
	name := records.ServiceName(server.peering)
	if s.service, err = cluster.Find[*corev1.Service](ctx, server.cluster, name); err == nil && s.service == nil {
		err = missing(server.cluster, "Service", name)
	}
	if err != nil {
		return s, err
	}
	s.values, err = serviceValues(s.service)
	return s, err
}

// missing is the error for an object of a peering that is not there.
func missing(c *cluster.Cluster, kind, name string) error {
	return hint.With(fmt.Errorf("cluster %q has no %s %s", c.Context, kind, name), "liqoctl network connect makes it again")
}

func (e *end) settings(ctx context.Context) (s sideSettings, err error) {
	s.peering, s.fabric, s.gateways = *e.have, *e.found.fabric, e.lasting()
	for _, id := range e.have.GatewayIDs() {
		d, err := cluster.Find[*appsv1.Deployment](ctx, e.cluster, id.Name())
		switch {
		case err != nil:
			return s, err
		case d != nil && len(d.Spec.Template.Spec.Containers) > 0: // one that is not there is completed: an earlier run was about to
			s.image = d.Spec.Template.Spec.Containers[0].Image
			return s, nil
		}
	}
	return s, missing(e.cluster, "Deployment", records.GatewayIDs(e.peering, 1)[0].Name())
}

// serviceValues are what a Service was made of. What an API server or a provider has added is not among it.
func serviceValues(svc *corev1.Service) (v templates.ServiceValues, err error) {
	fields, err := cluster.Applied(svc)
	if err != nil {
		return v, err
	}
	v.Type = svc.Spec.Type
	annotations, _, _ := unstructured.NestedMap(fields, "f:metadata", "f:annotations")
	for key := range annotations {
		if name := strings.TrimPrefix(key, "f:"); svc.Annotations[name] != "" {
			if v.Annotations == nil {
				v.Annotations = make(map[string]string)
			}
			v.Annotations[name] = svc.Annotations[name]
		}
	}
	if ip, _, _ := unstructured.NestedMap(fields, "f:spec", "f:loadBalancerIP"); ip != nil {
		if v.LoadBalancerIP, err = netip.ParseAddr(svc.Spec.LoadBalancerIP); err != nil {
			return v, fmt.Errorf("load balancer address of Service %s: %w", svc.Name, err)
		}
	}
	for _, port := range svc.Spec.Ports {
		if port.Name != (records.TunnelID{Server: 1, Client: 1}).PortName() {
			continue
		}
		v.Port = uint16(port.Port)
		key := fmt.Sprintf(`k:{"port":%d,"protocol":"UDP"}`, port.Port)
		if ours, _, _ := unstructured.NestedMap(fields, "f:spec", "f:ports", key, "f:nodePort"); ours != nil {
			v.NodePort = uint16(port.NodePort)
		}
		return v, nil
	}
	return v, fmt.Errorf("port of the first tunnel of Service %s: it is missing", svc.Name)
}

// keepEndpoint takes over an endpoint that the user has named instead of those of the Service.
func (e *end) keepEndpoint(svc *corev1.Service) error {
	id := records.TunnelID{Server: 1, Client: 1}
	t, _ := e.have.Tunnel(1, 1)
	if len(t.Endpoints) != 1 || stillGood(t.Endpoints, svc, id, e.peer.discovery.Nodes, endpointWishes{}) {
		return nil
	}
	host, port, err := net.SplitHostPort(t.Endpoints[0])
	if err != nil {
		return fmt.Errorf("endpoint %q of cluster %q: %w", t.Endpoints[0], e.cluster.Context, err)
	}
	e.wishes.ClientAddress = host
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return fmt.Errorf("endpoint %q of cluster %q: %w", t.Endpoints[0], e.cluster.Context, err)
	}
	if usual, _ := serviceEndpoints(svc, id, nil, endpointWishes{address: host}); len(usual) != 1 || usual[0] != t.Endpoints[0] {
		e.wishes.ClientPort = uint16(number)
	}
	return nil
}
