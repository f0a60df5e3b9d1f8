//go:build linux

package datapath

import (
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
)

// Gateway has the inputs for the kernel state in a gateway's network namespace.
type Gateway struct {
	Fabric  records.Fabric
	Peering records.Peering
	Number  int            // of the gateway, from 1
	Nodes   []records.Node // as reported; for claims in conflict, the first applies
	Pod     netip.Addr     // of the gateway
	Unused  map[int]bool   // tunnels, by number, to avoid; if all are unused, all are used
	// PlainVNI identifies tunnels without encryption; only the gateway itself can derive it. 0: not known.
	PlainVNI uint32
	Renewals map[int]int // of a client's tunnels without encryption, by number: see ListenPort
}

// State returns the desired kernel state in the gateway's network namespace.
func (g Gateway) State() netops.State {
	p := g.Peering
	own := p.Gateways[g.Number-1]
	c := netops.GatewayConfig{
		Overlay:      overlayConfig(g.Fabric),
		Pod:          g.Pod,
		Internal:     p.GatewayAddress(g.Fabric.InternalCIDR(), g.Number),
		InternalCIDR: g.Fabric.InternalCIDR(),
		ExternalCIDR: g.Fabric.ExternalCIDR(),
		Pods:         g.Fabric.PodCIDRs,
		Peer:         p.Peer.CIDRs(),
		VNI:          p.OverlayID(g.Number),
		MTU:          p.MTU,
		ClampMSS:     *p.Settings.Complete().ClampMSS,
		Exposed:      g.Exposed(),
		Carries:      slices.ContainsFunc(own.Tunnels, func(t records.Tunnel) bool { return len(t.WebSocket) > 0 }),
	}
	if p.Role == records.Server && p.Settings.CarriesWebSocket() {
		c.WebSocketPort = netops.WebSocketPort
	}
	if p.Settings.Plain() {
		c.Plain = &netops.Plain{VNI: g.PlainVNI}
		if p.Role == records.Server {
			c.Plain.Sources = cidr.Outermost(slices.DeleteFunc(slices.Clone(p.Peer.NodeNetworks), func(n netip.Prefix) bool { return !n.Addr().Is4() }))
		}
	}
	for i := range own.Tunnels {
		address, peer := p.TunnelAddresses(g.Number, i+1)
		c.Tunnels = append(c.Tunnels, netops.GatewayTunnel{
			Link: netops.TunnelLink(i + 1), Address: address, Peer: peer, ListenPort: g.ListenPort(i + 1), Used: !g.Unused[i+1],
		})
	}
	for _, n := range g.Nodes {
		source, ok := n.OverlaySources[records.GatewayID{Peering: p.Name, Number: g.Number}]
		internal := records.NodeAddress(g.Fabric.InternalCIDR(), n.Number)
		if !ok || !cidr.Lower(g.Fabric.InternalCIDR()).Contains(internal) {
			continue // does not send to this gateway yet
		}
		c.Nodes = append(c.Nodes, netops.GatewayNode{Internal: internal, Source: source, Pods: within(PodsOf(n), g.Fabric.PodCIDRs)})
	}
	return netops.GatewayState(c)
}

// Exposed returns the hosts that the peer may reach. It omits a host that is within the cluster's own ranges by now, or
// whose address would be that of a node.
func (g Gateway) Exposed() []records.Exposed {
	f, external := g.Fabric, g.Fabric.ExternalCIDR()
	own := slices.Concat(f.PodCIDRs, f.ServiceCIDRs, f.ExternalCIDRs, f.InternalCIDRs)
	var all []records.Exposed
	for _, e := range g.Peering.Exposed {
		if !cidr.Contains(own, e.Host) && external.Contains(e.Address) && !cidr.Lower(external).Contains(e.Address) {
			all = append(all, e)
		}
	}
	return all
}

// within returns the ranges that are inside one of the cluster's pod CIDRs: a node cannot claim others.
func within(in, cidrs []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(in, func(p netip.Prefix) bool { return !cidr.Within(p, cidrs) })
}

// ListenPort returns the listen port of a tunnel, given by number. A server's is in the record. A client uses any free
// port (0), a different one after each renewal, so that stale NAT state on the path is not reused; without encryption,
// one that depends on the number of renewals.
func (g Gateway) ListenPort(number int) uint16 {
	p := g.Peering
	switch {
	case p.Role == records.Server:
		return p.Gateways[g.Number-1].Tunnels[number-1].ListenPort
	case p.Settings.Plain():
		return netops.PlainPort + uint16(g.Renewals[number]%plainPorts*records.MaxGateways+number-1)
	}
	return 0
}

// RenewalsAt returns a number of renewals after which ListenPort is that port, if it is ever; 0 for lower ports.
func RenewalsAt(port uint16) int { return max(0, int(port)-netops.PlainPort) / records.MaxGateways }

// plainPorts is the number of ports that a client's tunnel without encryption has in turn.
const plainPorts = 64
