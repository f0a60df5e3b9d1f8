package desired

import (
	"cmp"
	"fmt"
	"slices"

	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// Record returns the desired record of the peering. Values that are not known yet are those of the current record:
// endpoints, the MTU before nodes have reported, a public key that is not generated yet.
func (h Half) Record() records.Peering {
	p := records.Peering{
		Version: records.SchemaVersion, Name: h.Peering, Number: h.Number, Role: h.Role,
		Peer: records.Peer{
			ClusterID: h.Peer.Cluster.ID, Name: h.Peer.Cluster.Name,
			PodCIDRs: h.Addresses.Pods, ExternalCIDRs: h.Addresses.External,
		},
		Local: h.Peer.Assigned, Settings: h.Settings, MTU: *h.Settings.Complete().MTU,
	}
	if h.Role == records.Server && h.Settings.Plain() {
		p.Peer.NodeNetworks = h.Peer.Ranges.NodeNetworks
	}
	for i := range h.Gateways() {
		gateway := records.LocalGateway{Temporary: i >= h.PermanentGateways()}
		for j := range h.PeerGateways() {
			gateway.Tunnels = append(gateway.Tunnels, h.tunnel(i+1, j+1))
		}
		p.Gateways = append(p.Gateways, gateway)
	}
	if p.MTU == 0 {
		p.MTU = h.FittingMTU(h.Written)
	}
	if have := h.Written; have != nil {
		p.MTU, p.Exposed = cmp.Or(p.MTU, have.MTU), have.Exposed
	}
	return p
}

// tunnel returns the configuration, in this cluster, of the tunnel between one of its gateways and one of the peer's,
// by their numbers. Values that are not known yet are those of the current record.
func (h Half) tunnel(own, peer int) records.Tunnel {
	id := records.TunnelOf(h.Role, own, peer)
	t := records.Tunnel{ListenPort: uint16(templates.TunnelPort + id.Client - 1)}
	far := h.Peer.Gateways[peer-1]
	if h.Role == records.Client && own <= len(far.Endpoints) {
		t.Endpoints = far.Endpoints[own-1]
	}
	var before records.Tunnel
	if h.Written != nil {
		before, _ = h.Written.Tunnel(own, peer)
	}
	t.Driver = far.Driver
	if t.Driver == (records.Driver{}) && !far.Replaced {
		t.Driver = before.Driver
	}
	if h.Role == records.Server {
		return t
	}
	if len(t.Endpoints) == 0 && h.Settings.UsesUDP() {
		t.Endpoints = before.Endpoints
	}
	if t.WebSocket = far.WebSocket; len(t.WebSocket) == 0 && h.Settings.CarriesWebSocket() {
		t.WebSocket = before.WebSocket
	}
	return t
}

// CheckPorts rejects first ports from which the tunnels' ports would exceed the maximum.
func (h Half) CheckPorts() error {
	last := records.TunnelOf(h.Role, h.Gateways(), h.PeerGateways())
	for _, first := range h.Settings.FirstPorts() {
		if _, err := last.Port(first.Port); err != nil {
			return &progress.InputError{Err: fmt.Errorf("--%s: %w", first.Flag, err)}
		}
	}
	return nil
}

// Gateways returns the number of gateways that the cluster has during this run.
func (h Half) Gateways() int {
	n := h.PermanentGateways()
	if h.Wanted.Spare && n == 1 {
		n++
	}
	return n
}

// PermanentGateways returns the number of gateways that the cluster will have: the user's, else the existing number,
// without temporary ones.
func (h Half) PermanentGateways() int {
	switch {
	case h.Wanted.Gateways != 0:
		return h.Wanted.Gateways
	case h.Recorded != nil:
		return len(slices.DeleteFunc(slices.Clone(h.Recorded.Gateways), func(g records.LocalGateway) bool { return g.Temporary }))
	case h.Peer.Recorded != nil:
		return h.Peer.Recorded.Gateways
	}
	return h.defaultGateways()
}

// defaultGateways returns the number of gateways in a new peering: two, so that the peering survives the loss of one.
// It is one in a cluster with a single Ready node, and if the user has set the server's port, as more gateways would
// need more ports there.
func (h Half) defaultGateways() int {
	ready := 0
	for _, n := range h.Nodes {
		if n.Ready {
			ready++
		}
	}
	if ready < 2 || h.onePort() || h.Peer.OnePort {
		return 1
	}
	return 2
}

// PeerGateways returns the number of gateways that the peer will have.
func (h Half) PeerGateways() int { return len(h.Peer.Gateways) }
