package discover

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/hint"
)

// checkFamily rejects clusters with IPv6 addresses only. A cluster without known addresses passes.
func (q *question) checkFamily() error {
	nodes := slices.DeleteFunc(slices.Clone(q.inv.nodes.Items), func(n corev1.Node) bool { return exclusionReason(&n) != "" })
	hasIP := func(n corev1.Node) bool {
		return slices.ContainsFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Type == corev1.NodeInternalIP })
	}
	if slices.ContainsFunc(nodes, hasIP) && !slices.ContainsFunc(q.nodes, func(n Node) bool { return len(n.Internal) > 0 }) {
		return q.ipv6OnlyError("nodes")
	}
	var six bool
	for i := range q.inv.pods.Items {
		pod := &q.inv.pods.Items[i]
		if pod.Spec.HostNetwork || pod.Status.PodIP == "" {
			continue
		}
		if len(PodAddresses(pod)) > 0 {
			return nil
		}
		six = true
	}
	if six {
		return q.ipv6OnlyError("pods")
	}
	return nil
}

// ipv6OnlyError is the error for a cluster whose nodes or pods have no IPv4 addresses.
func (q *question) ipv6OnlyError(what string) error {
	return hint.With(fmt.Errorf("cluster %q: its %s have no IPv4 addresses", q.context, what),
		"IPv6 is not supported: clusters of IPv4, or of both families in any order, can be connected")
}
