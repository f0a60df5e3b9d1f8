//go:build linux

package helper

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
)

// gatewayGrace is how long a node goes on sending to a gateway whose pod is gone. A pod that was deleted by force is
// replaced within about a second: until then packets are lost on the way, while without a gateway new connections would
// fail at once with "no route to host". No plugin that is known gives an address away so soon, and a pod on the same
// node that has it ends the grace.
const gatewayGrace = 5 * time.Second

// located is a gateway that was taken for one, and since when its pod is missing.
type located struct {
	gateway records.Gateway
	gone    time.Time // zero: its pod is there
}

// errNoPod says that the pod is not there which a gateway says it is. So it is for a moment when a pod is replaced.
var errNoPod = errors.New("there is no such pod")

// locate returns where a gateway is: where its record says, if the pod is there that it names. A record alone
// proves nothing: a gateway writes it itself, nodes send the peer's packets there and take what comes from there for
// the peer's, and the address goes to another pod some day. Else it is where it was last, while its pod is there and a
// moment longer.
func (m *memory) locate(id records.GatewayID, cm *corev1.ConfigMap, o nodeObjects, now time.Time) (records.Gateway, bool, error) {
	last, known := m.gateways[id]
	lastPod, lastErr := o.pod(id, last.gateway)
	g, pod, err := o.recorded(id, cm)
	if err == nil && pod != nil {
		// One that is about to end does not take over from one that is there to stay.
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

// recorded returns the gateway of a record and its pod, nil where the gateway has not written yet.
func (o nodeObjects) recorded(id records.GatewayID, cm *corev1.ConfigMap) (records.Gateway, *corev1.Pod, error) {
	if cm == nil || cm.Data[records.DataKey] == "" {
		return records.Gateway{}, nil, nil // made by the CLI
	}
	g, err := recordOf[records.Gateway](cm)
	if err != nil {
		return g, nil, err
	}
	pod, err := o.pod(id, g)
	if err != nil {
		err = fmt.Errorf("gateway %s: pod %q on node %q with address %s: %w", id, g.Pod, g.Node, g.PodIP, err)
	}
	return g, pod, err
}

// nextAge is how long it takes until the next gateway is not used any more because its pod is gone; 0: none is.
func (m *memory) nextAge(now time.Time) time.Duration {
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

// pod returns the pod of a gateway if it is the one that the gateway says, and the address is none of the cluster's
// own. The status of a pod is written by its node: no pod of this node has the address of a gateway on another one. A
// pod's address is known to the API server somewhat later than to the pod: until then no other pod of this node has it
// in any case.
func (o nodeObjects) pod(id records.GatewayID, g records.Gateway) (*corev1.Pod, error) {
	i := slices.IndexFunc(o.gateways, func(pod *corev1.Pod) bool { return pod.Namespace == o.namespace && pod.Name == g.Pod })
	if i < 0 {
		return nil, errNoPod
	}
	pod := o.gateways[i]
	switch err := id.Identity(records.ComponentGateway).CheckLabels(pod.Labels); {
	case err != nil:
		return nil, err
	case ended(pod):
		return nil, errNoPod
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

// checkAddress refuses an address that no pod on the gateway's node can have.
func (o nodeObjects) checkAddress(g records.Gateway) error {
	if own := o.ranges(); len(own) > 0 && cidr.Contains(own, g.PodIP) != (g.Node == o.node.Name) {
		return fmt.Errorf("pods of node %s are in %v, and %s runs on node %s", o.node.Name, own, g.PodIP, g.Node)
	}
	if peer, is := o.taken.overlapping(cidr.Single(g.PodIP)); is {
		return fmt.Errorf("%s is in range %s of peering %q", g.PodIP, peer.prefix, peer.peering)
	}
	return o.noPods.conflict(cidr.Single(g.PodIP))
}

// ranges are those of this node's pods, and of no other ones: nil where that is not known, as the plugin gives pods
// other addresses, or there is no pod yet.
func (o nodeObjects) ranges() []netip.Prefix {
	p := podsOf(o.node, o.pods)
	inside := func(pod *corev1.Pod) bool {
		return !pod.Spec.HostNetwork && !ended(pod) && slices.ContainsFunc(pod.Status.PodIPs, func(ip corev1.PodIP) bool {
			a, err := netip.ParseAddr(ip.IP)
			return err == nil && cidr.Contains(p.cidrs, a)
		})
	}
	if len(p.stray) > 0 || !slices.ContainsFunc(o.pods, inside) {
		return nil
	}
	return p.cidrs
}

// bearer is a pod of this node, other than a gateway's own, that has the gateway's address; nil if there is none. The
// own pod may be among the node's while it is not among gateways: the two lists are followed apart.
func (o nodeObjects) bearer(g records.Gateway) *corev1.Pod {
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

// ended reports whether a pod has nothing that runs: it keeps its address in its status while another one has it.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// bounded is a gateway's record without what does not concern its own peering: probed nodes that are not the peer's,
// and endpoints in ranges of other peerings. Packets of the gateway's pod to an endpoint pass the guard, so there are
// at most as many endpoints as tunnels.
func (v nodeView) bounded(p records.Peering, g records.Gateway) records.Gateway {
	nodes := cidr.Lower(p.Peer.ExternalCIDR.Seen)
	g.PeerNodes = slices.DeleteFunc(slices.Clone(g.PeerNodes), func(a netip.Addr) bool { return !nodes.Contains(a) })
	foreign := func(e netip.AddrPort) bool {
		if !e.Addr().Is4() {
			return true
		}
		other, taken := v.taken.overlapping(cidr.Single(e.Addr()))
		return taken && other.peering != p.Name || cidr.Contains(v.heldBack, e.Addr())
	}
	if foreign(g.Endpoint) {
		g.Endpoint = netip.AddrPort{}
	}
	others := slices.DeleteFunc(slices.Clone(g.OtherEndpoints), foreign)
	g.OtherEndpoints = others[:min(len(others), len(p.Gateways[0].Tunnels)-1)]
	return g
}
