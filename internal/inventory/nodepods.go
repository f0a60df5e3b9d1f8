package inventory

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/kube/discover"
	"liqonet.io/liqonet/internal/records"
)

// HelperNodes returns the names of a cluster's nodes that can run a helper, sorted: those that are Ready, and the
// others.
func HelperNodes(ctx context.Context, c *kube.Cluster) (ready, notReady []string, err error) {
	nodes, err := kube.All[*corev1.Node](ctx, c, "")
	for _, n := range nodes {
		switch {
		case !discover.RunsHelpers(n):
		case kube.Ready(n):
			ready = append(ready, n.Name)
		default:
			notReady = append(notReady, n.Name)
		}
	}
	slices.Sort(ready)
	slices.Sort(notReady)
	return ready, notReady, err
}

// AwaitOnNodes waits until the pods of a DaemonSet, which is annotated with the ID of a run, are done on all of the
// given nodes. done returns the nodes on which they are. If another run replaces the pods with its own, this is an
// error, because those pods did not do this run's work.
func AwaitOnNodes(
	ctx context.Context, c *kube.Cluster, set *appsv1.DaemonSet, what string, nodes []string, done func([]*corev1.Pod) ([]string, error),
) error {
	run := set.Annotations[records.AnnotationRun]
	label := Selector(set.Labels[records.LabelComponent])
	return c.FailFast(ctx, label, func(ctx context.Context) error {
		what := fmt.Sprintf("%s on the nodes of cluster %q", what, c.Context)
		return kube.Wait(ctx, c, kube.Labelled(label), what, func(pods []*corev1.Pod) (string, error) {
			own := slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return p.Annotations[records.AnnotationRun] != run })
			if slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil && !slices.Contains(own, p) }) {
				live, err := kube.Find[*appsv1.DaemonSet](ctx, c, set.Name)
				// The DaemonSet is this run's, and replaces the other run's pods.
				if err != nil || live != nil && live.Annotations[records.AnnotationRun] == run {
					return "pods of another run are there", err
				}
				return "", hint.With(fmt.Errorf("another run of liqoctl has put its pods in place of those of DaemonSet %s/%s", c.Namespace, set.Name),
					"run this again when the other one has ended")
			}
			ready, err := done(own)
			missing := slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return slices.Contains(ready, n) })
			return NotYet(missing), err
		})
	})
}

// TerminationMessage returns the termination message of a pod's init container; false if the container has not ended or
// has failed.
func TerminationMessage(pod *corev1.Pod) (message string, ended bool) {
	for _, c := range pod.Status.InitContainerStatuses {
		if end := c.State.Terminated; end != nil && end.ExitCode == 0 {
			return end.Message, true
		}
	}
	return "", false
}

// PodAddress returns a pod's IPv4 address.
func PodAddress(pod *corev1.Pod) (netip.Addr, error) {
	if all := discover.PodAddresses(pod); len(all) > 0 {
		return all[0], nil
	}
	return netip.Addr{}, fmt.Errorf("pod %s/%s has no IPv4 address", pod.Namespace, pod.Name)
}
