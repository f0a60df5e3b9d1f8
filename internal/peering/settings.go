package peering

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
)

// choose decides the member's role and, in the server's cluster, the settings. It needs the peer's first offer.
func (m *member) choose() (err error) {
	if m.role, err = m.chooseRole(); err != nil || m.role == records.Client {
		return err
	}
	var recorded records.GatewaySettings
	moved := false
	switch far := m.peer.Recorded; { // if they differ, the server's record takes precedence
	case m.have != nil:
		recorded, moved = m.have.Settings, m.have.Role != records.Server
	case far != nil:
		recorded, moved = far.Settings, far.Role != records.Client
	}
	if m.settings, err = m.wanted.settings.Decide(recorded, moved); err != nil {
		return &progress.InputError{Err: err, Advice: hint.Of(err)}
	}
	return nil
}

// chooseRole returns the role that the user wants, else the one in the records.
func (m *member) chooseRole() (records.Role, error) {
	far := m.peer.Recorded
	server := m.wanted.initial == records.Server
	switch {
	case m.wanted.serves != nil:
		server = *m.wanted.serves
	case m.have != nil && far != nil && m.have.Role == far.Role:
		return "", hint.With(fmt.Errorf("both clusters have the role %s in their peering", far.Role), "liqoctl network connect --update --server-side remote, or local")
	case m.have != nil:
		server = m.have.Role == records.Server
	case far != nil:
		server = far.Role == records.Client
	}
	if server {
		return records.Server, nil
	}
	return records.Client, nil
}

// agree takes the server's settings, rejects what the peer has decided otherwise, and assigns addresses to the peer, on
// the copy of the registry.
func (m *member) agree() error {
	if m.peer.Role == m.role {
		return fmt.Errorf("both clusters of peering %q would be the %s", m.peering, m.role)
	}
	if err := m.seal.accept(m.peer.Seal); err != nil {
		return fmt.Errorf("offer of cluster %q: %w", m.peer.Cluster.Name, err)
	}
	if m.role == records.Client {
		if m.peer.Settings == nil {
			return fmt.Errorf("offer of cluster %q: no settings", m.peer.Cluster.Name)
		}
		m.settings = *m.peer.Settings
	}
	if err := m.checkPorts(); err != nil {
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
