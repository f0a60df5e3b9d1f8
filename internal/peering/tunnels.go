package peering

import (
	"fmt"
	"slices"

	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// tunnel returns the configuration, at this member, of the tunnel between one of its gateways and one of the peer's, by
// their numbers. Values that are not known yet are those of the current record.
func (m *member) tunnel(own, peer int) records.Tunnel {
	id := records.TunnelOf(m.role, own, peer)
	t := records.Tunnel{ListenPort: uint16(templates.TunnelPort + id.Client - 1)}
	far := m.peer.Gateways[peer-1]
	if m.role == records.Client && own <= len(far.Endpoints) {
		t.Endpoints = far.Endpoints[own-1]
	}
	var before records.Tunnel
	if m.written != nil {
		before, _ = m.written.Tunnel(own, peer)
	}
	t.Driver = far.Driver
	if t.Driver == (records.Driver{}) && !far.Replaced {
		t.Driver = before.Driver
	}
	if m.role == records.Client && len(t.Endpoints) == 0 {
		t.Endpoints = before.Endpoints
	}
	return t
}

// checkPorts rejects first ports from which the tunnels' ports would exceed the maximum.
func (m *member) checkPorts() error {
	last := records.TunnelOf(m.role, m.gatewayCount(), m.peerCount())
	for _, first := range m.settings.FirstPorts() {
		if _, err := last.Port(first.Port); err != nil {
			return &progress.InputError{Err: fmt.Errorf("--%s: %w", first.Flag, err)}
		}
	}
	return nil
}

// gatewayCount returns the number of gateways that the member has during this run.
func (m *member) gatewayCount() int {
	n := m.permanentGateways()
	if m.spare && n == 1 {
		n++
	}
	return n
}

// permanentGateways returns the number of gateways that the member will have: the user's, else the existing number,
// without temporary ones.
func (m *member) permanentGateways() int {
	switch {
	case m.side.Gateways != 0:
		return m.side.Gateways
	case m.have != nil:
		return len(slices.DeleteFunc(slices.Clone(m.have.Gateways), func(g records.LocalGateway) bool { return g.Temporary }))
	case m.peer.Recorded != nil:
		return m.peer.Recorded.Gateways
	}
	return m.defaultGateways()
}

// defaultGateways returns the number of gateways in a new peering: two, so that the peering survives the loss of one.
// It is one in a cluster with a single Ready node, and if the user has set the server's port, as more gateways would
// need more ports there.
func (m *member) defaultGateways() int {
	ready := 0
	for _, n := range m.discovery.Nodes {
		if n.Ready {
			ready++
		}
	}
	if ready < 2 || m.onePort || m.peer.OnePort {
		return 1
	}
	return 2
}

// gatewayIDs returns the IDs of the member's gateways.
func (m *member) gatewayIDs() []records.GatewayID {
	return records.GatewayIDs(m.peering, m.gatewayCount())
}
