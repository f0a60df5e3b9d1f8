//go:build linux

package helper

import (
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/datapath"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
)

// nodeView is all that a node helper knows of its cluster: the records that it takes, and the pods of its own node.
type nodeView struct {
	node     string                                // its name
	fabric   *records.Fabric                       // nil: none, so that no peering is served
	peerings []records.Peering                     // that are served; sorted by name
	gateways map[records.GatewayID]records.Gateway // one that has not begun, or is gone, is missing
	unused   map[records.GatewayID]bool            // that carry no packets of pods
	pods     localPods
	// heldBack are ranges of peers that are guarded and no more; guarded, whose they are where all of a peering's are.
	heldBack []netip.Prefix
	guarded  []string
	refused  map[string]string // by peering: why it is not served as its record says

	blind      bool          // there are peerings, and no fabric that can be taken
	unreserved bool          // there may be reservations for peers, and none could be read
	aging      time.Duration // until the next gateway is not used any more; 0: none is about to
	taken      *apart        // what the peerings have of their own
}

// localPods are the addresses of a node's pods: ranges, and addresses outside them.
type localPods struct {
	cidrs []netip.Prefix
	stray []netip.Addr
}

func (p localPods) prefixes() []netip.Prefix {
	all := slices.Clone(p.cidrs)
	for _, a := range p.stray {
		all = append(all, cidr.Single(a))
	}
	return all
}

// podsOf tells where a node's pods are. A pod CIDR counts unless the CNI gives its pods other addresses
// altogether (Calico, AWS): then only the pods themselves do.
func podsOf(node *corev1.Node, pods []*corev1.Pod) localPods {
	var p localPods
	for _, text := range node.Spec.PodCIDRs {
		if c, err := netip.ParsePrefix(text); err == nil && c.Addr().Is4() {
			p.cidrs = append(p.cidrs, c.Masked())
		}
	}
	inside := false
	for _, pod := range pods {
		if pod.Spec.HostNetwork || ended(pod) {
			continue
		}
		for _, ip := range pod.Status.PodIPs {
			a, err := netip.ParseAddr(ip.IP)
			switch {
			case err != nil || !a.Is4():
			case cidr.Contains(p.cidrs, a):
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

// state returns what the node's kernel is to hold.
func (v nodeView) state(internal netip.Addr) netops.State {
	return datapath.Node{
		Name: v.node, Fabric: v.fabric, Peerings: v.peerings, Gateways: v.gateways, Unused: v.unused,
		Pods: v.pods.prefixes(), HeldBack: v.heldBack, Internal: internal,
	}.State()
}

// located reports whether it is known where a gateway is.
func (v nodeView) located(id records.GatewayID) bool { _, ok := v.gateways[id]; return ok }

// ranges are those whose addresses the state leads to, or holds back: of peers, and inside the overlay.
func (v nodeView) ranges() []netip.Prefix {
	all := slices.Clone(v.heldBack)
	if v.fabric == nil || len(v.peerings) == 0 {
		return all
	}
	all = append(all, v.fabric.InternalCIDR)
	for _, p := range v.peerings {
		all = append(all, p.Seen()...)
		for _, g := range p.Gateways {
			all = append(all, cidr.Single(g.Address))
		}
	}
	return all
}
