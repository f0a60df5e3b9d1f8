package cluster

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Delete deletes objects, workloads first and namespaces last, in parallel otherwise, and returns when they
// and the pods of workloads are gone. Only kind, namespace and name of the objects count, and the UID where one is set: an
// object that was listed is deleted, and none that was created in its place. What is not there is Absent; what exists
// without liqonet's label is Kept.
func (c *Cluster) Delete(ctx context.Context, objects ...Object) ([]Change, error) {
	return inWaves(ctx, objects, func(o Object) int { return waves - 1 - waveOf(o) }, c.deleteOne)
}

func (c *Cluster) deleteOne(ctx context.Context, object Object) (Change, error) {
	t, err := c.find(ctx, object, object.GetNamespace(), object.GetName())
	switch {
	case err != nil:
		return Change{}, err
	case t.live == nil, object.GetUID() != "" && object.GetUID() != t.live.GetUID():
		return t.became(Absent), nil
	case !ours(t.live):
		return t.became(Kept), nil
	}
	uid := t.live.GetUID()
	err = t.resource.Delete(ctx, t.Name, metav1.DeleteOptions{
		PropagationPolicy: propagation(object),
		Preconditions:     &metav1.Preconditions{UID: &uid},
	})
	// A conflict says that the object is another one by now: the one to delete is gone.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return Change{}, fmt.Errorf("delete %s in cluster %q: %w", t.operand(), c.Context, err)
	}
	return t.became(Deleted), c.waitGone(ctx, t)
}

// Present names those of the objects that exist and are liqonet's, such as "ConfigMap liqonet/fabric". Only kind,
// namespace and name of the objects count.
func (c *Cluster) Present(ctx context.Context, objects ...Object) ([]string, error) {
	var there []string
	for _, object := range objects {
		t, err := c.find(ctx, object, object.GetNamespace(), object.GetName())
		if err != nil {
			return nil, err
		}
		if t.live != nil && ours(t.live) {
			there = append(there, t.operand())
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

func (c *Cluster) waitGone(ctx context.Context, t target) error {
	return follow(ctx, c, t.resource, Named(t.Name), t.operand()+" to be gone", func(all []Object) (string, error) {
		if len(all) == 0 || all[0].GetUID() != t.live.GetUID() {
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
	err := each(ctx, kinds, func(ctx context.Context, i int, kind Object) error {
		all, err := c.list(ctx, kind, selector)
		found[i] = slices.DeleteFunc(all, func(o Object) bool { return !ours(o) })
		return err
	})
	return slices.Concat(found...), err
}
