//go:build linux

package datapath

import (
	"net/netip"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
)

// overlayOverhead is the overhead of the overlay for an inner packet, in bytes: IP 20, UDP 8, VXLAN or Geneve 8,
// Ethernet 14.
const overlayOverhead = 50

// Node has the inputs for the kernel state of a node.
type Node struct {
	Name     string                                // of the Node
	Fabric   *records.Fabric                       // nil: not installed, so no peering is applied
	Peerings []records.Peering                     // to apply; sorted by name
	Gateways map[records.GatewayID]records.Gateway // those whose location is known
	// Gateways to avoid; if all of a peering are unused, all are used.
	Unused   map[records.GatewayID]bool
	Pods     []netip.Prefix // of the node's pods
	HeldBack []netip.Prefix // ranges of peers that are only guarded
	Internal netip.Addr
}

// State returns the desired state of the node's kernel. Without peerings it is the guard of HeldBack.
func (n Node) State() netops.State {
	if n.Fabric == nil || len(n.Peerings) == 0 {
		return netops.GuardState(n.HeldBack)
	}
	c := netops.NodeConfig{
		Overlay:      overlayConfig(*n.Fabric),
		Internal:     n.Internal,
		InternalCIDR: n.Fabric.InternalCIDR(),
		Pods:         n.Pods,
		HeldBack:     n.HeldBack,
		PassForward:  n.Fabric.AllowForward,
	}
	for _, p := range n.Peerings {
		peer := netops.NodePeer{Name: p.Name, CIDRs: p.Seen(), MTU: p.MTU, Nodes: cidr.Lower(p.Peer.ExternalCIDR().Seen)}
		for i, own := range p.Gateways {
			id := records.GatewayID{Peering: p.Name, Number: i + 1}
			gateway := netops.NodeGateway{Internal: p.GatewayAddress(n.Fabric.InternalCIDR(), i+1), VNI: p.OverlayID(i + 1), Used: !n.Unused[id]}
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

// endpoints returns the addresses from which the peer's gateways send, and those of the record's endpoints and URLs
// that are addresses: a gateway tries them in turn. Only the gateway resolves names.
func endpoints(observed []netip.Addr, tunnels []records.Tunnel) []netip.Addr {
	all := slices.Clone(observed)
	for _, t := range tunnels {
		for _, e := range slices.Concat(t.Endpoints, t.WebSocket) {
			e, _, _ = strings.Cut(strings.TrimPrefix(e, "wss://"), "/")
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

// PodsOf returns the ranges and addresses of a node's pods, as reported.
func PodsOf(n records.Node) []netip.Prefix {
	all := slices.Clone(n.PodCIDRs)
	for _, a := range n.Pods {
		all = append(all, cidr.Single(a))
	}
	return all
}
