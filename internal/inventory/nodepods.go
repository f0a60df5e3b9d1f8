package inventory

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cluster"
)

// HelperNodes are the names of a cluster's nodes that can run a helper, sorted: those that are Ready, and the others.
func HelperNodes(ctx context.Context, c *cluster.Cluster) (ready, silent []string, err error) {
	nodes, err := cluster.All[*corev1.Node](ctx, c, "")
	for _, n := range nodes {
		switch {
		case !cluster.RunsHelpers(n):
		case cluster.Ready(n):
			ready = append(ready, n.Name)
		default:
			silent = append(silent, n.Name)
		}
	}
	slices.Sort(ready)
	slices.Sort(silent)
	return ready, silent, err
}

// AwaitOnNodes waits until a component's pods are done on all of some nodes. done names the nodes on which they are.
func AwaitOnNodes(ctx context.Context, c *cluster.Cluster, component, what string, nodes []string, done func([]*corev1.Pod) ([]string, error)) error {
	label := Selector(component)
	return c.FailFast(ctx, label, func(ctx context.Context) error {
		what := fmt.Sprintf("%s on the nodes of cluster %q", what, c.Context)
		return cluster.Wait(ctx, c, cluster.Labelled(label), what, func(pods []*corev1.Pod) (string, error) {
			ready, err := done(pods)
			missing := slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return slices.Contains(ready, n) })
			return NotYet(missing), err
		})
	})
}

// Reported is what a pod's init container wrote as its termination message; false: it has not ended, or has failed.
func Reported(pod *corev1.Pod) (message string, ended bool) {
	for _, c := range pod.Status.InitContainerStatuses {
		if end := c.State.Terminated; end != nil && end.ExitCode == 0 {
			return end.Message, true
		}
	}
	return "", false
}

// PodAddress is a pod's IPv4 address.
func PodAddress(pod *corev1.Pod) (netip.Addr, error) {
	if all := cluster.PodAddresses(pod); len(all) > 0 {
		return all[0], nil
	}
	return netip.Addr{}, fmt.Errorf("pod %s/%s has no IPv4 address", pod.Namespace, pod.Name)
}
