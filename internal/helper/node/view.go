//go:build linux

package node

import (
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/datapath"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/serving"
	"liqonet.io/liqonet/netops"
)

// view is the state of its cluster that a node helper uses: the valid records, and the pods of its own node.
type view struct {
	serving.Choice
	node     *corev1.Node
	fabric   *records.Fabric                       // nil: none, so that no peering is served
	gateways map[records.GatewayID]records.Gateway // only those with a known location
	unused   map[records.GatewayID]bool            // gateways that carry no packets of pods
	pods     localPods
	refused  map[string]string // by peering: why it is not served, or which foreign rule or route takes its packets

	blind bool // there are peerings, and no valid fabric
	// unreserved means that ranges of peers may be unknown: reservations could not be read, or a peering's record was
	// not read since the start.
	unreserved bool
	partial    bool          // no reservations could be read, and there are peerings that are not served
	aging      time.Duration // until the next gateway expires; 0: none is about to
}

// localPods are the addresses of a node's pods: ranges, and addresses outside them.
type localPods struct {
	cidrs  []netip.Prefix
	stray  []netip.Addr
	inside bool         // a pod has an address in cidrs
	all    []netip.Addr // of each pod, sorted
}

func (p localPods) prefixes() []netip.Prefix { return slices.Concat(p.cidrs, cidr.Singles(p.stray)) }

// podsOf returns the addresses of a node's pods. A pod CIDR counts unless the CNI gives all of its pods other addresses
// (Calico, AWS): then only the pods themselves count.
func podsOf(node *corev1.Node, pods []*corev1.Pod) localPods {
	var p localPods
	for _, text := range node.Spec.PodCIDRs {
		if c, err := netip.ParsePrefix(text); err == nil && c.Addr().Is4() {
			p.cidrs = append(p.cidrs, c.Masked())
		}
	}
	for _, pod := range pods {
		if pod.Spec.HostNetwork || ended(pod) {
			continue
		}
		for _, ip := range pod.Status.PodIPs {
			a, err := netip.ParseAddr(ip.IP)
			if err != nil || !a.Is4() {
				continue
			}
			p.all = append(p.all, a)
			if cidr.Contains(p.cidrs, a) {
				p.inside = true
			} else {
				p.stray = append(p.stray, a)
			}
		}
	}
	if len(p.stray) > 0 && !p.inside {
		p.cidrs = nil
	}
	slices.SortFunc(p.all, netip.Addr.Compare)
	slices.SortFunc(p.stray, netip.Addr.Compare)
	p.stray = slices.Compact(p.stray)
	return p
}

// state returns the desired state of the node's kernel.
func (v view) state(internal netip.Addr) netops.State {
	return datapath.Node{
		Name: v.node.Name, Fabric: v.fabric, Peerings: v.Peerings, Gateways: v.gateways, Unused: v.unused,
		Pods: v.pods.prefixes(), HeldBack: v.HeldBack, Internal: internal,
	}.State()
}

// located reports whether the location of a gateway is known.
func (v view) located(id records.GatewayID) bool { _, ok := v.gateways[id]; return ok }

// ranges returns the ranges that the state routes or holds back: of peers, and inside the overlay.
func (v view) ranges() []netip.Prefix {
	all := slices.Clone(v.HeldBack)
	if v.fabric == nil || len(v.Peerings) == 0 {
		return all
	}
	all = append(all, v.fabric.InternalCIDRs...)
	for _, p := range v.Peerings {
		all = append(all, p.Seen()...)
		for _, id := range p.GatewayIDs() {
			all = append(all, cidr.Single(p.GatewayAddress(v.fabric.InternalCIDR(), id.Number)))
		}
	}
	return all
}
