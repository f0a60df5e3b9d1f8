package peering

import (
	"fmt"
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// firstTunnel is the range of the two ends of the first tunnel; those of the others follow. They are link-local: never
// routed, and in conflict with nothing.
var firstTunnel = netip.MustParsePrefix("169.254.18.0/30")

// tunnelEnds are the addresses of the two ends of a tunnel.
func tunnelEnds(t records.TunnelID) (server, client netip.Prefix) {
	const size = 4 // addresses of a /30
	first := cidr.Number(firstTunnel.Addr()) + uint32(size*t.Index())
	end := func(n uint32) netip.Prefix { return netip.PrefixFrom(cidr.Address(first+n), firstTunnel.Bits()) }
	return end(1), end(2)
}

// tunnel is this end of the tunnel of one of its gateways to one of the peer's, by their numbers. What is not known yet
// is as in the record.
func (e *end) tunnel(own, peer int) records.Tunnel {
	id := records.TunnelOf(e.role, own, peer)
	server, client := tunnelEnds(id)
	t := records.Tunnel{ListenPort: uint16(templates.TunnelPort + id.Client - 1), Address: server, PeerAddress: client.Addr()}
	if e.role == records.Client {
		t.Address, t.PeerAddress, t.Endpoints = client, server.Addr(), e.endpoints[id]
	}
	var before records.Tunnel
	if e.written != nil {
		before, _ = e.written.Tunnel(own, peer)
	}
	switch key := e.peer.keys[peer-1]; {
	case key != nil:
		t.PublicKey = key.Public()
	case !e.peer.rekeyed[peer-1]:
		t.PublicKey = before.PublicKey
	}
	if e.role == records.Client && len(t.Endpoints) == 0 {
		t.Endpoints = before.Endpoints
	}
	return t
}

// checkPorts refuses ports from which there are too few up to the last one.
func (c *connector) checkPorts() error {
	last := records.TunnelID{Server: c.server().count(), Client: c.server().peer.count()}
	s := c.server().settings
	for flag, first := range map[string]uint16{
		"gw-server-service-port": s.service.Port, "gw-server-service-nodeport": s.service.NodePort, "gw-client-port": s.EndpointPort,
	} {
		if _, err := templates.PortOf(first, last); err != nil {
			return &progress.InputError{Err: fmt.Errorf("--%s: %w", flag, err)}
		}
	}
	return nil
}

// count is how many gateways the end has while this runs.
func (e *end) count() int {
	n := e.lasting()
	if e.spare && n == 1 {
		n++
	}
	return n
}

// lasting is how many gateways the end is to have: as the user says, else as it stands, without temporary ones.
func (e *end) lasting() int {
	switch {
	case e.side.Gateways != 0:
		return e.side.Gateways
	case e.have != nil:
		return len(slices.DeleteFunc(slices.Clone(e.have.Gateways), func(g records.LocalGateway) bool { return g.Temporary }))
	case e.peer.have != nil:
		return len(e.peer.have.Gateways[0].Tunnels)
	}
	return e.newGateways()
}

// newGateways is how many gateways the end of a new peering has: two, so that none is missed. A cluster with a single
// Ready node has one. So has a peering whose server is reached at a port that the user chose: others would need more
// ports there.
func (e *end) newGateways() int {
	ready := 0
	for _, n := range e.discovery.Nodes {
		if n.Ready {
			ready++
		}
	}
	if ready < 2 || e.onePort {
		return 1
	}
	return 2
}

// gatewayIDs are those of the gateways that the end has.
func (e *end) gatewayIDs() []records.GatewayID { return records.GatewayIDs(e.peering, e.count()) }
