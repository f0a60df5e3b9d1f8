package kube

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

// WaitDaemonSet waits until a DaemonSet has ready pods of its newest version on the given number of nodes, or on all
// nodes that it selects if these are fewer. The number is needed because a DaemonSet selects nodes that are not Ready
// as well and would not become complete.
func (c *Cluster) WaitDaemonSet(ctx context.Context, name string, nodes func() int) error {
	return waitRollout(ctx, c, name, func(set *appsv1.DaemonSet) (observed int64, missing string) {
		status := set.Status
		if wanted := min(int(status.DesiredNumberScheduled), nodes()); int(status.UpdatedNumberScheduled) < wanted || int(status.NumberReady) < wanted {
			missing = fmt.Sprintf("%d of %d pods up to date, %d ready", status.UpdatedNumberScheduled, status.DesiredNumberScheduled, status.NumberReady)
		}
		return status.ObservedGeneration, missing
	})
}

// WaitDeployment waits until all pods of the Deployment's newest version are ready and no older pod is left. It does
// not use the Deployment's condition ReplicaFailure, which remains for some time after the cause was removed: FailFast
// ends the wait if pods are rejected.
func (c *Cluster) WaitDeployment(ctx context.Context, name string) error {
	return waitRollout(ctx, c, name, func(deployment *appsv1.Deployment) (observed int64, missing string) {
		status, wanted := deployment.Status, ptr.Deref(deployment.Spec.Replicas, 1)
		if status.UpdatedReplicas < wanted || status.AvailableReplicas < wanted || status.Replicas > wanted {
			missing = fmt.Sprintf("%d of %d pods up to date, %d available, %d in all", status.UpdatedReplicas, wanted, status.AvailableReplicas, status.Replicas)
		}
		return status.ObservedGeneration, missing
	})
}

// waitRollout waits until a workload misses nothing, and its controller has observed its generation.
func waitRollout[T Object](ctx context.Context, c *Cluster, name string, state func(T) (observed int64, missing string)) error {
	var kind T
	what := fmt.Sprintf("%s %s/%s", kindOf(kind).Kind, c.Namespace, name)
	return Wait(ctx, c, Named(name), what, func(all []T) (string, error) {
		if len(all) == 0 {
			return "it does not exist", nil
		}
		observed, missing := state(all[0])
		if observed < all[0].GetGeneration() {
			missing = "its controller has not seen it yet"
		}
		return missing, nil
	})
}
