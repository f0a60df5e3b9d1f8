package kube

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
)

// WaitDaemonSet waits until a DaemonSet has ready pods of its newest version on the given number of nodes, or on all
// nodes that it selects if these are fewer. The number is needed because a DaemonSet selects nodes that are not Ready
// as well and would not become complete.
func (c *Cluster) WaitDaemonSet(ctx context.Context, name string, nodes func() int) error {
	what := fmt.Sprintf("DaemonSet %s/%s", c.Namespace, name)
	return Wait(ctx, c, Named(name), what, func(all []*appsv1.DaemonSet) (string, error) {
		if len(all) == 0 {
			return "it does not exist", nil
		}
		status := all[0].Status
		switch wanted := min(int(status.DesiredNumberScheduled), nodes()); {
		case status.ObservedGeneration < all[0].Generation:
			return "its controller has not seen it yet", nil
		case int(status.UpdatedNumberScheduled) < wanted, int(status.NumberReady) < wanted:
			return fmt.Sprintf("%d of %d pods up to date, %d ready", status.UpdatedNumberScheduled,
				status.DesiredNumberScheduled, status.NumberReady), nil
		}
		return "", nil
	})
}

// WaitDeployment waits until all pods of the Deployment's newest version are ready and no older pod is left. It does
// not use the Deployment's condition ReplicaFailure, which remains for some time after the cause was removed: FailFast
// ends the wait if pods are rejected.
func (c *Cluster) WaitDeployment(ctx context.Context, name string) error {
	what := fmt.Sprintf("Deployment %s/%s", c.Namespace, name)
	return Wait(ctx, c, Named(name), what, func(all []*appsv1.Deployment) (string, error) {
		if len(all) == 0 {
			return "it does not exist", nil
		}
		wanted := int32(1)
		if all[0].Spec.Replicas != nil {
			wanted = *all[0].Spec.Replicas
		}
		status := all[0].Status
		if status.ObservedGeneration < all[0].Generation {
			return "its controller has not seen it yet", nil
		}
		if status.UpdatedReplicas < wanted || status.AvailableReplicas < wanted || status.Replicas > wanted {
			return fmt.Sprintf("%d of %d pods up to date, %d available, %d in all", status.UpdatedReplicas, wanted,
				status.AvailableReplicas, status.Replicas), nil
		}
		return "", nil
	})
}
