//go:build linux

package node

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/helper/cache"
	"liqonet.io/liqonet/internal/records"
)

// gatewayGrace is how long a node keeps sending to a gateway whose pod no longer exists. A pod that was deleted by
// force is replaced within about a second: until then packets are lost on the path, while without a gateway new
// connections would fail immediately with "no route to host". No known plugin reassigns an address so soon, and a pod
// on the same node that has the address ends the grace period.
const gatewayGrace = 5 * time.Second

// located is a gateway whose pod was found, and since when its pod is missing.
type located struct {
	gateway records.Gateway
	gone    time.Time // zero: its pod exists
}

// gatewayNode returns the location of a gateway from its record, if the pod in the record exists. A record alone is not
// trusted: a gateway writes it itself, nodes send the peer's packets to its address and accept the peer's packets from
// it, and another pod gets the address some day. Otherwise it returns the last location, while that pod exists and for
// a grace period.
func (m *lastValid) gatewayNode(id records.GatewayID, cm *corev1.ConfigMap, o objects, now time.Time) (records.Gateway, bool, error) {
	last, known := m.gateways[id]
	lastPod, lastErr := o.pod(id, last.gateway)
	g, pod, err := o.recorded(id, cm)
	if err == nil && pod != nil {
		// A terminating pod does not replace a pod that is not terminating.
		stays := known && lastErr == nil && lastPod.DeletionTimestamp == nil
		if pod.DeletionTimestamp == nil || !stays {
			m.gateways[id] = located{gateway: g}
			return g, true, nil
		}
	}
	switch {
	case !known:
		return records.Gateway{}, false, err
	case lastErr == nil:
		last.gone = time.Time{}
	case last.gone.IsZero():
		last.gone = now
	}
	if !last.gone.IsZero() && (now.Sub(last.gone) >= gatewayGrace || o.bearer(last.gateway) != nil) {
		delete(m.gateways, id)
		return records.Gateway{}, false, err
	}
	m.gateways[id] = last
	return last.gateway, true, err
}

// recorded returns the gateway of a record and its pod, nil if the gateway has not written the record yet.
func (o objects) recorded(id records.GatewayID, cm *corev1.ConfigMap) (records.Gateway, *corev1.Pod, error) {
	if cm == nil || cm.Data[records.DataKey] == "" {
		return records.Gateway{}, nil, nil // created by the CLI
	}
	g, err := cache.Record[records.Gateway](cm)
	if err != nil {
		return g, nil, err
	}
	pod, err := o.pod(id, g)
	if err != nil {
		err = fmt.Errorf("gateway %s: pod %q on node %q with address %s: %w", id, g.Pod, g.Node, g.PodIP, err)
	}
	return g, pod, err
}

// nextAge returns the time until the next gateway expires because its pod no longer exists; 0: none.
func (m *lastValid) nextAge(now time.Time) time.Duration {
	next := time.Duration(0)
	for _, l := range m.gateways {
		if l.gone.IsZero() {
			continue
		}
		if rest := max(l.gone.Add(gatewayGrace).Sub(now), time.Millisecond); next == 0 || rest < next {
			next = rest
		}
	}
	return next
}

// pod returns the pod of a gateway if it matches the record, and the address is not one of the cluster's own. A pod's
// node writes its status: no pod of this node has the address of a gateway on another one. The API server knows a pod's
// address somewhat later than the pod: until then no other pod of this node may have it in any case.
func (o objects) pod(id records.GatewayID, g records.Gateway) (*corev1.Pod, error) {
	i := slices.IndexFunc(o.gateways, func(pod *corev1.Pod) bool { return pod.Namespace == o.namespace && pod.Name == g.Pod })
	if i < 0 {
		return nil, helper.ErrNoPod
	}
	pod := o.gateways[i]
	switch err := id.Identity(records.ComponentGateway).CheckLabels(pod.Labels); {
	case err != nil:
		return nil, err
	case ended(pod):
		return nil, helper.ErrNoPod
	case pod.Spec.HostNetwork:
		return nil, errors.New("it has its node's network")
	case g.Node == "" || pod.Spec.NodeName != g.Node:
		return nil, fmt.Errorf("it runs on node %s", pod.Spec.NodeName)
	case len(pod.Status.PodIPs) > 0 && !bears(pod, g.PodIP):
		return nil, fmt.Errorf("it has address %s", pod.Status.PodIP)
	}
	if other := o.bearer(g); other != nil && (g.Node != o.node.Name || len(pod.Status.PodIPs) == 0) {
		return nil, fmt.Errorf("pod %s/%s has the address", other.Namespace, other.Name)
	}
	return pod, o.checkAddress(g)
}

// checkAddress rejects an address that no pod on the gateway's node can have. Unless the plugin gives pods other
// addresses, only this node's pods are in its pod CIDRs.
func (o objects) checkAddress(g records.Gateway) error {
	own := podsOf(o.node, o.pods)
	if own.inside && len(own.stray) == 0 && cidr.Contains(own.cidrs, g.PodIP) != (g.Node == o.node.Name) {
		return fmt.Errorf("pods of node %s are in %v, and %s runs on node %s", o.node.Name, own.cidrs, g.PodIP, g.Node)
	}
	return o.noPods.Conflict(cidr.Single(g.PodIP))
}

// bearer returns a pod of this node, other than a gateway's own, that has the gateway's address; nil if there is none.
// The gateway's own pod may be among the node's pods but not yet among gateways: these are two watches.
func (o objects) bearer(g records.Gateway) *corev1.Pod {
	i := slices.IndexFunc(o.pods, func(pod *corev1.Pod) bool {
		own := pod.Namespace == o.namespace && pod.Name == g.Pod
		return !own && !ended(pod) && bears(pod, g.PodIP)
	})
	if i < 0 {
		return nil
	}
	return o.pods[i]
}

func bears(pod *corev1.Pod, a netip.Addr) bool {
	return slices.ContainsFunc(pod.Status.PodIPs, func(ip corev1.PodIP) bool { return ip.IP == a.String() })
}

// ended reports whether no container of a pod runs: its status keeps its address while another pod has it.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// bounded returns a gateway's record without data that does not concern its own peering: probed nodes that are not the
// peer's, and endpoints in ranges of other peerings. Packets of the gateway's pod to an endpoint pass the guard, so the
// number of endpoints is limited to that of tunnels.
func (v view) bounded(p records.Peering, g records.Gateway) records.Gateway {
	nodes := cidr.Lower(p.Peer.ExternalCIDR().Seen)
	g.PeerNodes = slices.DeleteFunc(slices.Clone(g.PeerNodes), func(a netip.Addr) bool { return !nodes.Contains(a) })
	foreign := func(e netip.AddrPort) bool {
		if !e.Addr().Is4() {
			return true
		}
		taken, _ := v.NoPods.Overlapping(cidr.Single(e.Addr()))
		return taken.Peering != "" && taken.Peering != p.Name || cidr.Contains(v.HeldBack, e.Addr())
	}
	if foreign(g.Endpoint) {
		g.Endpoint = netip.AddrPort{}
	}
	others := slices.DeleteFunc(slices.Clone(g.OtherEndpoints), foreign)
	g.OtherEndpoints = others[:min(len(others), max(len(p.Gateways[0].Tunnels)-1, 0))]
	return g
}
