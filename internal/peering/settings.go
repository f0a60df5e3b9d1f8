package peering

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// settings are the settings of a peering: the user's, else the existing ones, else the defaults.
type settings struct {
	records.Fixed

	service        templates.ServiceValues // of the server's gateways
	mode           records.GatewayMode
	implementation records.Implementation
	clampMSS       bool
}

// choose decides the settings, and which member is the server. It needs the records of both members.
func (c *connector) choose(ctx context.Context) error {
	if err := c.chooseServer(); err != nil {
		return err
	}
	o, server := c.options, c.server()
	have := records.Peering{Implementation: records.Auto, ClampMSS: true}
	moved := false
	for _, m := range []*member{server.peer, server} { // if they differ, the server's record takes precedence
		if m.have != nil {
			have, moved = *m.have, m.have.Role != m.role
		}
	}
	if moved {
		have.Fixed.EndpointHost, have.Fixed.EndpointPort = "", 0
	}
	s := settings{
		Fixed: records.Fixed{
			MTU:          ptr.Deref(o.MTU, have.Fixed.MTU),
			EndpointHost: ptr.Deref(o.ClientAddress, have.Fixed.EndpointHost), EndpointPort: ptr.Deref(o.ClientPort, have.Fixed.EndpointPort),
		},
		mode:           cmp.Or(o.GatewayMode, have.GatewayMode),
		implementation: cmp.Or(o.Implementation, have.Implementation),
		clampMSS:       ptr.Deref(o.ClampMSS, have.ClampMSS),
	}
	if s.mode == records.ActiveActive {
		s.mode = ""
	}
	var err error
	if s.service, err = server.chooseService(ctx, o.Service); err != nil {
		return err
	}
	c.local.settings, c.remote.settings = s, s
	return nil
}

// chooseServer decides the roles.
func (c *connector) chooseServer() error {
	l, r := c.local.have, c.remote.have
	localServes := false
	switch requested := c.options.LocalServes; {
	case requested != nil:
		localServes = *requested
	case l != nil && r != nil && l.Role == r.Role:
		return hint.With(fmt.Errorf("both clusters have the role %s in their peering", l.Role), "liqoctl network connect --update --server-side remote, or local")
	case l != nil:
		localServes = l.Role == records.Server
	case r != nil:
		localServes = r.Role == records.Client
	}
	c.local.role, c.remote.role = records.Client, records.Server
	if localServes {
		c.local.role, c.remote.role = records.Server, records.Client
	}
	return nil
}

// chooseService decides the values of the server's Service. A cluster that was not the server before has no Service.
func (m *member) chooseService(ctx context.Context, v templates.ServiceValues) (templates.ServiceValues, error) {
	var existing templates.ServiceValues
	svc, err := kube.Find[*corev1.Service](ctx, m.cluster, records.ServiceName(m.peering))
	if err == nil && svc != nil {
		existing, err = inventory.ServiceValues(svc)
	}
	if err != nil {
		return v, err
	}
	v.Type = cmp.Or(v.Type, existing.Type, corev1.ServiceTypeLoadBalancer)
	v.Port = cmp.Or(v.Port, existing.Port)
	if v.Type != corev1.ServiceTypeClusterIP {
		v.NodePort = cmp.Or(v.NodePort, existing.NodePort)
	}
	if v.Type == corev1.ServiceTypeLoadBalancer {
		v.LoadBalancerIP = cmp.Or(v.LoadBalancerIP, existing.LoadBalancerIP)
	}
	if v.LoadBalancerIP.IsUnspecified() {
		v.LoadBalancerIP = netip.Addr{}
	}
	if v.Annotations == nil {
		v.Annotations = existing.Annotations
	}
	if err := v.Validate(); err != nil {
		return v, &progress.InputError{Err: fmt.Errorf("--gw-server-service-*: %w", err), Advice: "set --gw-server-service-type"}
	}
	return v, nil
}

// gatewayImage returns the image of the existing gateways.
func (m *member) gatewayImage(ctx context.Context) (string, error) {
	for _, id := range m.have.GatewayIDs() {
		d, err := kube.Find[*appsv1.Deployment](ctx, m.cluster, id.Name())
		switch {
		case err != nil:
			return "", err
		// A missing Deployment is created later: an earlier run was interrupted before it.
		case d != nil && len(d.Spec.Template.Spec.Containers) > 0:
			return d.Spec.Template.Spec.Containers[0].Image, nil
		}
	}
	return "", hint.With(fmt.Errorf("cluster %q has no gateway of peering %q", m.cluster.Context, m.peering), "liqoctl network connect makes it again")
}
