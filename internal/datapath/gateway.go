//go:build linux

package datapath

import (
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
)

// Gateway is what the state of the kernel in a gateway's namespace follows from.
type Gateway struct {
	Fabric  records.Fabric
	Peering records.Peering
	Number  int            // of the gateway, from 1
	Nodes   []records.Node // as they report; of those that claim the same, the first counts
	Pod     netip.Addr     // of the gateway
	Unused  map[int]bool   // tunnels, by number, that packets do not take; where all are, they take all
}

// State is the state of the kernel in the gateway's namespace.
func (g Gateway) State() netops.State {
	p := g.Peering
	own := p.Gateways[g.Number-1]
	c := netops.GatewayConfig{
		Overlay:      overlayConfig(g.Fabric),
		Pod:          g.Pod,
		Internal:     own.Address,
		InternalCIDR: g.Fabric.InternalCIDR,
		ExternalCIDR: g.Fabric.ExternalCIDR,
		Pods:         g.Fabric.PodCIDRs,
		Peer:         p.Peer.CIDRs(),
		VNI:          own.OverlayID,
		MTU:          p.MTU,
		ClampMSS:     p.ClampMSS,
		Exposed:      g.Exposed(),
	}
	for i, t := range own.Tunnels {
		c.Tunnels = append(c.Tunnels, netops.GatewayTunnel{
			Link: netops.TunnelLink(i + 1), Address: t.Address, Peer: t.PeerAddress, ListenPort: ListenPort(p.Role, t), Used: !g.Unused[i+1],
		})
	}
	for _, n := range g.Nodes {
		source, ok := n.OverlaySources[records.GatewayID{Peering: p.Name, Number: g.Number}]
		if !ok || !cidr.Lower(g.Fabric.InternalCIDR).Contains(n.Internal) {
			continue // not yet on its way to this gateway
		}
		c.Nodes = append(c.Nodes, netops.GatewayNode{Internal: n.Internal, Source: source, Pods: within(PodsOf(n), g.Fabric.PodCIDRs)})
	}
	return netops.GatewayState(c)
}

// Exposed are the hosts that the peer may reach. One that has come to be inside the cluster's own ranges, or that
// would have an address of a node, is left out.
func (g Gateway) Exposed() []records.Exposed {
	f := g.Fabric
	own := slices.Concat(f.PodCIDRs, f.ServiceCIDRs, []netip.Prefix{f.ExternalCIDR, f.InternalCIDR})
	var all []records.Exposed
	for _, e := range g.Peering.Exposed {
		if !cidr.Contains(own, e.Host) && f.ExternalCIDR.Contains(e.Address) && !cidr.Lower(f.ExternalCIDR).Contains(e.Address) {
			all = append(all, e)
		}
	}
	return all
}

// within keeps the ranges that lie inside one of the cluster's pod CIDRs: a node cannot claim others.
func within(in, cidrs []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(in, func(p netip.Prefix) bool { return !cidr.Within(p, cidrs) })
}

// ListenPort is the server's port. A client takes any, another one after each renewal: a translation on the way
// that went stale is left behind so.
func ListenPort(role records.Role, t records.Tunnel) uint16 {
	if role == records.Client {
		return 0
	}
	return t.ListenPort
}
