//go:build linux

package datapath

import (
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
)

// overlayOverhead is what the overlay adds to an inner packet: IP 20, UDP 8, VXLAN or Geneve 8, Ethernet 14.
const overlayOverhead = 50

// Node is what the state of a node's kernel follows from.
type Node struct {
	Name     string                                // of the Node
	Fabric   *records.Fabric                       // nil: none, so that no peering is served
	Peerings []records.Peering                     // that are served; sorted by name
	Gateways map[records.GatewayID]records.Gateway // those of which it is known where they are
	// That packets do not take; where all of a peering are, they take all.
	Unused   map[records.GatewayID]bool
	Pods     []netip.Prefix // of the node's pods
	HeldBack []netip.Prefix // ranges of peers that are guarded and no more
	Internal netip.Addr
}

// State is the state of the node's kernel. Where no peering is served it is the guard of what is held back.
func (n Node) State() netops.State {
	if n.Fabric == nil || len(n.Peerings) == 0 {
		return netops.GuardState(n.HeldBack)
	}
	c := netops.NodeConfig{
		Overlay:      overlayConfig(*n.Fabric),
		Internal:     n.Internal,
		InternalCIDR: n.Fabric.InternalCIDR,
		Pods:         n.Pods,
		HeldBack:     n.HeldBack,
		PassForward:  n.Fabric.AllowForward,
	}
	for _, p := range n.Peerings {
		peer := netops.NodePeer{Name: p.Name, CIDRs: p.Seen(), MTU: p.MTU, Nodes: cidr.Lower(p.Peer.ExternalCIDR.Seen)}
		for i, own := range p.Gateways {
			id := records.GatewayID{Peering: p.Name, Number: i + 1}
			gateway := netops.NodeGateway{Internal: own.Address, VNI: own.OverlayID, Used: !n.Unused[id]}
			if g, ok := n.Gateways[id]; ok {
				gateway.Pod, gateway.Local = g.PodIP, g.Node == n.Name
				peer.Endpoints = append(peer.Endpoints, endpoints(g.ObservedEndpoints(), own.Tunnels)...)
			}
			peer.Gateways = append(peer.Gateways, gateway)
		}
		c.Peers = append(c.Peers, peer)
	}
	return netops.NodeState(c)
}

// endpoints are where a gateway hears its peer, and those of its record that are addresses: it tries them in turn.
// Those that are names are left to the gateway.
func endpoints(heard []netip.Addr, tunnels []records.Tunnel) []netip.Addr {
	all := slices.Clone(heard)
	for _, t := range tunnels {
		for _, e := range t.Endpoints {
			if a, err := netip.ParseAddrPort(e); err == nil {
				all = append(all, a.Addr())
			}
		}
	}
	return all
}

func overlayConfig(f records.Fabric) netops.OverlayConfig {
	return netops.OverlayConfig{Kind: netops.LinkKind(f.Overlay.Kind), Port: f.Overlay.Port, MTU: f.MTU - overlayOverhead}
}

// PodsOf are the ranges and addresses of the pods that a node reports.
func PodsOf(n records.Node) []netip.Prefix {
	all := slices.Clone(n.PodCIDRs)
	for _, a := range n.Pods {
		all = append(all, cidr.Single(a))
	}
	return all
}
