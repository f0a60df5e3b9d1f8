package peering

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
)

// choose decides the role and, in the server's cluster, the settings.
func (m *member) choose() (err error) {
	m.role, m.settings, err = m.half().Choose()
	return err
}

// agree takes the server's settings, and assigns addresses to the peer, on the copy of the registry.
func (m *member) agree() (err error) {
	if m.settings, err = m.half().AgreedSettings(); err != nil {
		return err
	}
	m.wanted.Gateways = m.half().PermanentGateways() // whatever later offers have
	if err := m.seal.accept(m.peer.Seal); err != nil {
		return fmt.Errorf("offer of cluster %q: %w", m.peer.Cluster.Name, err)
	}
	if err := m.half().CheckPorts(); err != nil {
		return err
	}
	return inventory.ExplainAddresses(m.cluster.Context, m.assign(m.observed.registry))
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
