//go:build linux

package helper

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
)

// overlayOverhead is what the overlay adds to an inner packet: IP 20, UDP 8, VXLAN or Geneve 8, Ethernet 14.
const overlayOverhead = 50

// nodeView is all that a node helper knows of its cluster: the records, and the pods of its own node.
type nodeView struct {
	fabric   *records.Fabric // nil: none, which means that nothing of ours is wanted
	peerings []records.Peering
	gateways map[string]records.Gateway // by peering; one that has not begun is missing
	pods     localPods
}

// localPods are the addresses of a node's pods: ranges, and addresses outside them.
type localPods struct {
	cidrs []netip.Prefix
	stray []netip.Addr
}

func (p localPods) prefixes() []netip.Prefix {
	all := slices.Clone(p.cidrs)
	for _, a := range p.stray {
		all = append(all, netip.PrefixFrom(a, a.BitLen()))
	}
	return all
}

// podsOf tells where a node's pods are. A pod CIDR counts unless the CNI gives its pods other addresses
// altogether (Calico, AWS): then only the pods themselves do.
func podsOf(node *corev1.Node, pods []*corev1.Pod) localPods {
	var p localPods
	for _, text := range node.Spec.PodCIDRs {
		if cidr, err := netip.ParsePrefix(text); err == nil && cidr.Addr().Is4() {
			p.cidrs = append(p.cidrs, cidr.Masked())
		}
	}
	inside := false
	for _, pod := range pods {
		if pod.Spec.HostNetwork || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, ip := range pod.Status.PodIPs {
			a, err := netip.ParseAddr(ip.IP)
			switch {
			case err != nil || !a.Is4():
			case slices.ContainsFunc(p.cidrs, func(c netip.Prefix) bool { return c.Contains(a) }):
				inside = true
			default:
				p.stray = append(p.stray, a)
			}
		}
	}
	if len(p.stray) > 0 && !inside {
		p.cidrs = nil
	}
	slices.SortFunc(p.stray, netip.Addr.Compare)
	p.stray = slices.Compact(p.stray)
	return p
}

// state returns what the node's kernel is to hold. Without a peering that is nothing.
func (v nodeView) state(internal netip.Addr) (netops.State, error) {
	if v.fabric == nil || len(v.peerings) == 0 {
		return netops.State{}, nil
	}
	if v.fabric.Overlay.Kind == "" {
		return netops.State{}, errors.New("fabric: the overlay's kind is not decided, yet there are peerings")
	}
	c := netops.NodeConfig{
		Overlay:      overlayConfig(*v.fabric),
		Internal:     internal,
		InternalCIDR: v.fabric.InternalCIDR,
		Pods:         v.pods.prefixes(),
		PassForward:  v.fabric.AllowForward,
	}
	for _, p := range v.peerings {
		peer := netops.NodePeer{Name: p.Name, CIDRs: p.Seen(), Gateway: p.GatewayAddress, VNI: p.OverlayID, MTU: p.MTU, Nodes: nodeRange(p.Peer.ExternalCIDR.Seen)}
		if g, ok := v.gateways[p.Name]; ok {
			peer.Pod, peer.Endpoints = g.PodIP, endpoints(g.Endpoint.Addr(), p.Tunnel.Endpoints)
		}
		c.Peers = append(c.Peers, peer)
	}
	return netops.NodeState(c), nil
}

// ranges are those whose addresses the state leads to: of peers, and inside the overlay.
func (v nodeView) ranges() []netip.Prefix {
	if v.fabric == nil || len(v.peerings) == 0 {
		return nil
	}
	all := []netip.Prefix{v.fabric.InternalCIDR}
	for _, p := range v.peerings {
		all = append(append(all, p.Seen()...), netip.PrefixFrom(p.GatewayAddress, p.GatewayAddress.BitLen()))
	}
	return all
}

func overlayConfig(f records.Fabric) netops.OverlayConfig {
	return netops.OverlayConfig{Kind: netops.LinkKind(f.Overlay.Kind), Port: f.Overlay.Port, MTU: f.MTU - overlayOverhead}
}

// endpoints are where a gateway hears its peer, if it does, and those of its record that are addresses: it tries them
// in turn. Those that are names are left to the gateway.
func endpoints(heard netip.Addr, recorded []string) []netip.Addr {
	var all []netip.Addr
	if heard.IsValid() {
		all = append(all, heard)
	}
	for _, e := range recorded {
		if a, err := netip.ParseAddrPort(e); err == nil {
			all = append(all, a.Addr())
		}
	}
	return all
}

// view decodes what a node follows. A document that cannot be read is an error: what it asked for must stay.
func view(maps []*corev1.ConfigMap) (nodeView, error) {
	v := nodeView{gateways: map[string]records.Gateway{}}
	var errs []error
	for _, cm := range maps {
		if cm.Data[records.DataKey] == "" {
			continue // made by the CLI for a gateway that has not written yet
		}
		var err error
		switch cm.Labels[records.LabelComponent] {
		case records.ComponentFabric:
			var f records.Fabric
			f, err = recordOf[records.Fabric](cm)
			v.fabric = &f
		case records.ComponentPeering:
			var p records.Peering
			p, err = recordOf[records.Peering](cm)
			v.peerings = append(v.peerings, p)
		case records.ComponentGateway:
			var g records.Gateway
			g, err = recordOf[records.Gateway](cm)
			if peering := cm.Labels[records.LabelPeering]; err == nil {
				v.gateways[peering] = g
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%w; the kernel is left as it is", err))
		}
	}
	slices.SortFunc(v.peerings, func(a, b records.Peering) int { return strings.Compare(a.Name, b.Name) })
	return v, errors.Join(errs...)
}
