package cluster

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// FamilyError says that a cluster has no IPv4 addresses.
type FamilyError struct {
	Context string
	What    string // such as "nodes"
}

func (e *FamilyError) Error() string {
	return fmt.Sprintf("cluster %q: its %s have no IPv4 addresses", e.Context, e.What)
}

// Hint says which clusters are supported.
func (e *FamilyError) Hint() string {
	return "IPv6 is not supported: clusters of IPv4, or of both families in any order, can be connected"
}

// checkFamily refuses clusters that have IPv6 addresses only. A cluster without any known address passes.
func (q *question) checkFamily() error {
	nodes := slices.DeleteFunc(slices.Clone(q.inv.nodes.Items), func(n corev1.Node) bool { return leftOut(&n) != "" })
	hasIP := func(n corev1.Node) bool {
		return slices.ContainsFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Type == corev1.NodeInternalIP })
	}
	if slices.ContainsFunc(nodes, hasIP) && !slices.ContainsFunc(q.nodes, func(n Node) bool { return len(n.Internal) > 0 }) {
		return &FamilyError{Context: q.context, What: "nodes"}
	}
	var six bool
	for i := range q.inv.pods.Items {
		pod := &q.inv.pods.Items[i]
		if pod.Spec.HostNetwork || pod.Status.PodIP == "" {
			continue
		}
		if len(podAddresses(pod)) > 0 {
			return nil
		}
		six = true
	}
	if six {
		return &FamilyError{Context: q.context, What: "pods"}
	}
	return nil
}
