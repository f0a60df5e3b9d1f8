package peering

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
)

// choose decides the settings, and which member is the server. It needs the records of both members.
func (c *connector) choose() error {
	if err := c.chooseServer(); err != nil {
		return err
	}
	var recorded records.GatewaySettings
	moved := false
	for _, m := range []*member{c.server().peer, c.server()} { // if they differ, the server's record takes precedence
		if m.have != nil {
			recorded, moved = m.have.Settings, m.have.Role != m.role
		}
	}
	s, err := c.options.Decide(recorded, moved)
	if err != nil {
		return &progress.InputError{Err: err, Advice: hint.Of(err)}
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
