package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// endCheck is how often a wait for an end looks for what keeps it: that a node is lost changes neither a workload nor a
// namespace.
const endCheck = 2 * time.Second

// waitGone waits until an object that is being deleted is gone. If only pods of lost nodes keep it, a workload is
// deleted without them, and the wait for a namespace ends: Kubernetes removes it after them.
func (c *Cluster) waitGone(ctx context.Context, t target) error {
	selection := Named(t.Name)
	selector, has := podsOf(t.live)
	if has && c.dry == nil {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		selection.Again = ringing(ctx, endCheck)
	}
	return follow(ctx, c, t.resource, selection, t.operand()+" to be gone", func(all []Object) (string, error) {
		if len(all) == 0 || all[0].GetUID() != t.live.GetUID() {
			return "", nil
		}
		if selection.Again != nil {
			// Who may not read nodes or pods waits for all of them.
			if stranded, others, err := c.ending(ctx, selector); err == nil && len(stranded) > 0 && !others {
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

// ringing is a bell that rings until ctx ends.
func ringing(ctx context.Context, every time.Duration) *Bell {
	bell := new(Bell)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(every):
				bell.Ring()
			}
		}
	}()
	return bell
}

// leave ends the wait for an object that only pods of lost nodes keep. A workload is deleted without them, and missing
// until it is gone.
func (c *Cluster) leave(ctx context.Context, t target) (missing string, err error) {
	if t.Kind == kindOf(&corev1.Namespace{}).Kind {
		return "", nil
	}
	uid, policy := t.live.GetUID(), metav1.DeletePropagationBackground
	err = t.resource.Delete(ctx, t.Name, metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid}})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // gone, or another one by now
		return "", nil
	case err != nil:
		return "", fmt.Errorf("delete %s in cluster %q without its pods on lost nodes: %w", t.operand(), c.Context, err)
	}
	return "still there", nil
}

// podsOf is a label selector for the pods that keep an object which is being deleted; false: pods keep none of its
// kind.
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

// Remains is what a namespace that is being deleted still waits for, after a colon; "" if it is not known.
func Remains(ns *corev1.Namespace) string {
	for _, condition := range ns.Status.Conditions {
		if condition.Status == corev1.ConditionTrue && condition.Type != corev1.NamespaceDeletionDiscoveryFailure {
			return ": " + condition.Message
		}
	}
	return ""
}

// Stranded names the pods that have been told to end and cannot, as their nodes are lost, such as "node-x7k2p (node
// n3)", sorted. Kubernetes removes them when the node is back, or its Node object is deleted. In a dry run there are
// none.
func (c *Cluster) Stranded(ctx context.Context, selector string) ([]string, error) {
	if c.IsDryRun() {
		return nil, nil
	}
	pods, _, err := c.ending(ctx, selector)
	names := make([]string, len(pods))
	for i, pod := range pods {
		names[i] = fmt.Sprintf("%s (node %s)", pod.Name, pod.Spec.NodeName)
	}
	slices.Sort(names)
	return names, err
}

// ending are the pods that are past the time they were given to end, on nodes that are not Ready; others: there are
// more pods.
func (c *Cluster) ending(ctx context.Context, selector string) (stranded []*corev1.Pod, others bool, err error) {
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
