package kube

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// endCheck is the interval at which a wait for a deletion checks the remaining pods. A watch is not enough: the loss of
// a node changes neither the workload nor the namespace.
const endCheck = 2 * time.Second

// waitGone waits until an object that is being deleted is gone. If only pods on lost nodes remain, a workload is
// deleted without them, and the wait for a namespace ends: Kubernetes removes it after these pods.
func (c *Cluster) waitGone(ctx context.Context, t target) error {
	selection := Named(t.Name)
	selector, has := podsOf(t.live)
	if has && c.dry == nil {
		selection.Every = endCheck
	}
	return waitIn(ctx, c, watchResource[Object](ctx, t.resource, selection), t.operand()+" to be gone", func(all []Object) (string, error) {
		if len(all) == 0 || all[0].GetUID() != t.live.GetUID() {
			return "", nil
		}
		if selection.Every != 0 {
			// Without permission to read nodes or pods, wait for all pods.
			if stranded, others, err := c.terminating(ctx, selector); err == nil && len(stranded) > 0 && !others {
				return c.leave(ctx, t)
			}
		}
		if ns, ok := all[0].(*corev1.Namespace); ok {
			return "still there" + Remains(ns), nil
		}
		if f := all[0].GetFinalizers(); len(f) > 0 {
			return fmt.Sprintf("still there, with finalizers %v", f), nil
		}
		return "still there", nil
	})
}

// leave ends the wait for an object of which only pods on lost nodes remain. It deletes a workload in the background,
// without waiting for these pods. missing is set until the workload is gone.
func (c *Cluster) leave(ctx context.Context, t target) (missing string, err error) {
	if t.Kind == kindOf(&corev1.Namespace{}).Kind {
		return "", nil
	}
	deleted, err := c.remove(ctx, t, metav1.DeletePropagationBackground)
	switch {
	case err != nil:
		return "", fmt.Errorf("leave its pods on lost nodes: %w", err)
	case !deleted:
		return "", nil
	}
	return "still there", nil
}

// podsOf returns a label selector for the pods that must end before an object is deleted; false if there are none for
// its kind.
func podsOf(o Object) (selector string, has bool) {
	switch o := o.(type) {
	case *appsv1.DaemonSet:
		return metav1.FormatLabelSelector(o.Spec.Selector), true
	case *appsv1.Deployment:
		return metav1.FormatLabelSelector(o.Spec.Selector), true
	case *corev1.Namespace:
		return "", true
	}
	return "", false
}

// Remains returns the reason why a namespace that is being deleted still exists, after a colon; "" if unknown.
func Remains(ns *corev1.Namespace) string {
	for _, condition := range ns.Status.Conditions {
		if condition.Status == corev1.ConditionTrue && condition.Type != corev1.NamespaceDeletionDiscoveryFailure {
			return ": " + condition.Message
		}
	}
	return ""
}

// Stranded returns the pods that cannot terminate because their nodes are lost, such as "node-x7k2p (node n3)", sorted.
// Kubernetes removes them when the node is back or its Node object is deleted. A dry run returns none.
func (c *Cluster) Stranded(ctx context.Context, selector string) ([]string, error) {
	if c.IsDryRun() {
		return nil, nil
	}
	pods, _, err := c.terminating(ctx, selector)
	names := make([]string, len(pods))
	for i, pod := range pods {
		names[i] = fmt.Sprintf("%s (node %s)", pod.Name, pod.Spec.NodeName)
	}
	slices.Sort(names)
	return names, err
}

// terminating returns the pods whose grace period is over on nodes that are not Ready. others is set if there are more
// pods.
func (c *Cluster) terminating(ctx context.Context, selector string) (stranded []*corev1.Pod, others bool, err error) {
	pods, err := All[*corev1.Pod](ctx, c, selector)
	if err != nil || len(pods) == 0 {
		return nil, false, err
	}
	nodes, err := All[*corev1.Node](ctx, c, "")
	if err != nil {
		return nil, false, err
	}
	live := make(map[string]bool)
	for _, n := range nodes {
		live[n.Name] = Ready(n)
	}
	for _, pod := range pods {
		if end := pod.DeletionTimestamp; end != nil && time.Now().After(end.Time) && !live[pod.Spec.NodeName] {
			stranded = append(stranded, pod)
		} else {
			others = true
		}
	}
	return stranded, others, nil
}
