package cluster

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Delete deletes objects, workloads first and namespaces last, in parallel otherwise, and returns when they
// and the pods of workloads are gone. Only kind, namespace and name of the objects count, and the UID where one is set: an
// object that was listed is deleted, and none that was created in its place. What is not there is Absent; what exists
// without liqonet's label is Kept.
func (c *Cluster) Delete(ctx context.Context, objects ...Object) ([]Change, error) {
	return inWaves(ctx, objects, func(o Object) int { return waves - 1 - waveOf(o) }, c.deleteOne)
}

func (c *Cluster) deleteOne(ctx context.Context, object Object) (Change, error) {
	r, change, err := c.begin(object)
	if err != nil {
		return Change{}, err
	}
	live, err := r.get(ctx, object.GetName())
	switch {
	case apierrors.IsNotFound(err), err == nil && object.GetUID() != "" && object.GetUID() != live.GetUID():
		change.Action = Absent
		return change, nil
	case err != nil:
		return Change{}, fmt.Errorf("read %s in cluster %q: %w", operand(object), c.Context, err)
	case !ours(live):
		change.Action = Kept
		return change, nil
	}
	uid := live.GetUID()
	err = r.delete(ctx, object.GetName(), metav1.DeleteOptions{
		PropagationPolicy: propagation(object),
		Preconditions:     &metav1.Preconditions{UID: &uid},
	})
	// A conflict says that the object is another one by now: the one to delete is gone.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return Change{}, fmt.Errorf("delete %s in cluster %q: %w", operand(object), c.Context, err)
	}
	if err := c.waitGone(ctx, r, object, uid); err != nil {
		return Change{}, err
	}
	change.Action = Deleted
	return change, nil
}

// Present names those of the objects that exist and are liqonet's, such as "ConfigMap liqonet/fabric". Only kind,
// namespace and name of the objects count.
func (c *Cluster) Present(ctx context.Context, objects ...Object) ([]string, error) {
	var there []string
	for _, object := range objects {
		r, err := c.resource(object, object.GetNamespace())
		if err != nil {
			return nil, err
		}
		live, err := r.get(ctx, object.GetName())
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("read %s in cluster %q: %w", operand(object), c.Context, err)
		case ours(live):
			there = append(there, operand(object))
		}
	}
	return there, nil
}

// propagation lets a workload exist until its pods are gone, so that its end is theirs.
func propagation(o Object) *metav1.DeletionPropagation {
	policy := metav1.DeletePropagationBackground
	switch o.(type) {
	case *appsv1.DaemonSet, *appsv1.Deployment:
		policy = metav1.DeletePropagationForeground
	}
	return &policy
}

func (c *Cluster) waitGone(ctx context.Context, r resource, object Object, uid types.UID) error {
	return follow(ctx, c, r, Named(object.GetName()), operand(object)+" to be gone", func(all []Object) (string, error) {
		if len(all) == 0 || all[0].GetUID() != uid {
			return "", nil
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

// Remains tells what a namespace that is being deleted still waits for, after a colon; "" if that is not known.
func Remains(ns *corev1.Namespace) string {
	for _, condition := range ns.Status.Conditions {
		if condition.Status == corev1.ConditionTrue && condition.Type != corev1.NamespaceDeletionDiscoveryFailure {
			return ": " + condition.Message
		}
	}
	return ""
}

// List returns liqonet's objects in its namespace that a label selector matches, of every kind that liqonet
// has there. It finds what an interrupted run left. Cluster-wide objects are not among them.
func (c *Cluster) List(ctx context.Context, selector string) ([]Object, error) {
	kinds := namespacedKinds()
	found := make([][]Object, len(kinds))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, kind := range kinds {
		group.Go(func() error {
			r, err := c.resource(kind, c.Namespace)
			if err != nil {
				return err
			}
			all, _, err := r.list(ctx, metav1.ListOptions{LabelSelector: selector})
			if err != nil {
				return fmt.Errorf("list every %s in namespace %s of cluster %q: %w", strings.TrimSpace(operand(kind)), c.Namespace, c.Context, err)
			}
			for _, object := range all {
				if ours(object) {
					found[i] = append(found[i], object)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var objects []Object
	for _, some := range found {
		objects = append(objects, some...)
	}
	return objects, nil
}
