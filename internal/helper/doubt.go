//go:build linux

package helper

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/records"
)

// doubt takes out of the view gateways that say they are where another pod of this node is: a gateway writes its
// address itself, and what comes from there is let through to the peer's endpoint and taken for the overlay's. Of pods
// of other nodes a node knows nothing. It returns what it took out and why, in the peerings' order.
func (v nodeView) doubt(namespace string, pods []*corev1.Pod) []string {
	var doubted []string
	for _, p := range v.peerings {
		g, ok := v.gateways[p.Name]
		if !ok {
			continue
		}
		if bearer := otherBearer(pods, g.PodIP, namespace, p.Name); bearer != nil {
			delete(v.gateways, p.Name)
			doubted = append(doubted, fmt.Sprintf("peering %s: %s is the address of pod %s/%s", p.Name, g.PodIP, bearer.Namespace, bearer.Name))
		}
	}
	return doubted
}

// otherBearer is a pod that has an address which no gateway of a peering has; nil if there is none. Pods that have
// ended keep their address in their status, while another has it.
func otherBearer(pods []*corev1.Pod, a netip.Addr, namespace, peering string) *corev1.Pod {
	var other *corev1.Pod
	for _, pod := range pods {
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		bears := slices.ContainsFunc(pod.Status.PodIPs, func(ip corev1.PodIP) bool { return ip.IP == a.String() })
		switch {
		case ended || !bears:
		case pod.Namespace == namespace && pod.Labels[records.LabelComponent] == records.ComponentGateway &&
			pod.Labels[records.LabelPeering] == peering:
			return nil
		default:
			other = pod
		}
	}
	return other
}
