package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"liqonet.io/liqonet/internal/records"
)

// Delete deletes objects, workloads first and namespaces last, otherwise in parallel. It returns when the objects and
// the pods of workloads are gone, except pods on lost nodes: see Stranded. Only kind, namespace, name and UID, if set,
// of the objects are used: with a UID, Delete does not delete an object that was recreated with the same name. The
// change of a missing object is Absent; that of an object without liqonet's label is Kept.
func (c *Cluster) Delete(ctx context.Context, objects ...Object) ([]Change, error) {
	// The permission to list may be deleted with the namespace.
	gone := sync.OnceValue(func() error { return c.waitListed(ctx, objects) })
	changes, err := inWaves(ctx, objects, func(o Object) int { return waves - 1 - waveOf(o) }, func(ctx context.Context, o Object) (Change, error) {
		if _, last := o.(*corev1.Namespace); last {
			if err := gone(); err != nil {
				return Change{}, err
			}
		}
		return c.deleteOne(ctx, o)
	})
	if err != nil {
		return changes, err
	}
	return changes, gone()
}

// isListed reports whether an object came from List and has no dependents that must be deleted first. There may be
// thousands of these, such as the Leases of nodes, so each takes one request.
func isListed(o Object) bool {
	return o.GetUID() != "" && ours(o) && propagation(o) == metav1.DeletePropagationBackground
}

// waitListed waits until listed objects are gone, all of a kind together. Those with finalizers are not gone after the
// request.
func (c *Cluster) waitListed(ctx context.Context, objects []Object) error {
	kinds := map[string][]Object{}
	for _, o := range objects {
		if isListed(o) {
			key := kindOf(o).Kind + " " + o.GetNamespace()
			kinds[key] = append(kinds[key], o)
		}
	}
	return Each(ctx, slices.Sorted(maps.Keys(kinds)), func(ctx context.Context, _ int, key string) error {
		gone := map[types.UID]bool{}
		for _, o := range kinds[key] {
			gone[o.GetUID()] = true
		}
		t, err := c.at(kinds[key][0], kinds[key][0].GetNamespace(), "")
		if err != nil {
			return err
		}
		all := watchResource[Object](ctx, t.resource, Labelled(records.LabelComponent))
		return waitIn(ctx, c, all, t.Kind+" to be gone", func(all []Object) (string, error) {
			for _, o := range all {
				if gone[o.GetUID()] {
					return fmt.Sprintf("%s still there, with finalizers %v", o.GetName(), o.GetFinalizers()), nil
				}
			}
			return "", nil
		})
	})
}

// deleteOne deletes an object and waits until it is gone, unless it is listed.
func (c *Cluster) deleteOne(ctx context.Context, object Object) (Change, error) {
	t, err := c.at(object, object.GetNamespace(), object.GetName())
	listed := isListed(object)
	if t.live = object; err == nil && !listed {
		t, err = c.find(ctx, object, object.GetNamespace(), object.GetName())
	}
	switch {
	case err != nil:
		return Change{}, err
	case t.live == nil, object.GetUID() != "" && object.GetUID() != t.live.GetUID():
		return t.became(Absent), nil
	case !ours(t.live):
		return t.became(Kept), nil
	}
	deleted, err := c.remove(ctx, t, propagation(object))
	switch {
	case err != nil:
		return Change{}, err
	case !deleted:
		return t.became(Absent), nil
	case listed:
		return t.became(Deleted), nil
	}
	return t.became(Deleted), c.waitGone(ctx, t)
}

// remove deletes the live object of a target. false: it is gone; an object that was recreated stays.
func (c *Cluster) remove(ctx context.Context, t target, policy metav1.DeletionPropagation) (deleted bool, err error) {
	uid := t.live.GetUID()
	err = t.resource.Delete(ctx, t.Name, metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid}})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("delete %s in cluster %q: %w", t.operand(), c.Context, err)
	}
	return true, nil
}

// Present returns the objects that exist and are liqonet's, such as "ConfigMap liqonet/fabric". Only kind, namespace
// and name of the objects are used.
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

// propagation returns the deletion policy. A workload is deleted in the foreground: it exists until its pods are gone.
func propagation(o Object) metav1.DeletionPropagation {
	switch o.(type) {
	case *appsv1.DaemonSet, *appsv1.Deployment:
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

// List returns liqonet's objects in its namespace that match a label selector, of all kinds that liqonet creates there.
// It also finds objects that an interrupted run left. It does not return cluster-wide objects.
func (c *Cluster) List(ctx context.Context, selector string) ([]Object, error) {
	kinds := namespacedKinds()
	found := make([][]Object, len(kinds))
	err := Each(ctx, kinds, func(ctx context.Context, i int, kind Object) error {
		all, err := c.list(ctx, kind, selector)
		found[i] = slices.DeleteFunc(all, func(o Object) bool { return !ours(o) })
		return err
	})
	return slices.Concat(found...), err
}
