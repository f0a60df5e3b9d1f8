package peering

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// settings are those of a peering: what the user says, else what stands, else the default.
type settings struct {
	records.Fixed

	service        templates.ServiceValues // of the server's gateways
	mode           records.GatewayMode
	implementation records.Implementation
	clampMSS       bool
}

// choose decides the settings, and which end is the server. Both ends know their records.
func (c *connector) choose(ctx context.Context) error {
	if err := c.chooseServer(); err != nil {
		return err
	}
	o, server := c.options, c.server()
	have := records.Peering{Implementation: records.Auto, ClampMSS: true}
	moved := false
	for _, e := range []*end{server.peer, server} { // where they disagree, the server's record counts
		if e.have != nil {
			have, moved = *e.have, e.have.Role != e.role
		}
	}
	if moved {
		have.Fixed.EndpointHost, have.Fixed.EndpointPort = "", 0
	}
	s := settings{
		Fixed: records.Fixed{
			MTU:          given(o.MTU, have.Fixed.MTU),
			EndpointHost: given(o.ClientAddress, have.Fixed.EndpointHost), EndpointPort: given(o.ClientPort, have.Fixed.EndpointPort),
		},
		mode:           cmp.Or(o.GatewayMode, have.GatewayMode),
		implementation: cmp.Or(o.Implementation, have.Implementation),
		clampMSS:       given(o.ClampMSS, have.ClampMSS),
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

// given is what the user says, else what stands.
func given[T any](wish *T, standing T) T {
	if wish != nil {
		return *wish
	}
	return standing
}

// chooseServer decides the roles.
func (c *connector) chooseServer() error {
	l, r := c.local.have, c.remote.have
	localServes := false
	switch wish := c.options.LocalServes; {
	case wish != nil:
		localServes = *wish
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

// chooseService decides the Service of the server's gateways. A cluster that was not the server has none yet.
func (e *end) chooseService(ctx context.Context, v templates.ServiceValues) (templates.ServiceValues, error) {
	var standing templates.ServiceValues
	svc, err := kube.Find[*corev1.Service](ctx, e.cluster, records.ServiceName(e.peering))
	if err == nil && svc != nil {
		standing, err = inventory.ServiceValues(svc)
	}
	if err != nil {
		return v, err
	}
	v.Type = cmp.Or(v.Type, standing.Type, corev1.ServiceTypeLoadBalancer)
	v.Port = cmp.Or(v.Port, standing.Port)
	if v.Type != corev1.ServiceTypeClusterIP {
		v.NodePort = cmp.Or(v.NodePort, standing.NodePort)
	}
	if v.Type == corev1.ServiceTypeLoadBalancer {
		v.LoadBalancerIP = cmp.Or(v.LoadBalancerIP, standing.LoadBalancerIP)
	}
	if v.LoadBalancerIP.IsUnspecified() {
		v.LoadBalancerIP = netip.Addr{}
	}
	if v.Annotations == nil {
		v.Annotations = standing.Annotations
	}
	if err := v.Validate(); err != nil {
		return v, &progress.InputError{Err: fmt.Errorf("--gw-server-service-*: %w", err), Advice: "set --gw-server-service-type"}
	}
	return v, nil
}

// gatewayImage is the image of the gateways that stand.
func (e *end) gatewayImage(ctx context.Context) (string, error) {
	for _, id := range e.have.GatewayIDs() {
		d, err := kube.Find[*appsv1.Deployment](ctx, e.cluster, id.Name())
		switch {
		case err != nil:
			return "", err
		// One that is not there is completed: an earlier run was about to.
		case d != nil && len(d.Spec.Template.Spec.Containers) > 0:
			return d.Spec.Template.Spec.Containers[0].Image, nil
		}
	}
	return "", hint.With(fmt.Errorf("cluster %q has no gateway of peering %q", e.cluster.Context, e.peering), "liqoctl network connect makes it again")
}
