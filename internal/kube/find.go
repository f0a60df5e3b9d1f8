package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Find returns the object of that type and name; nil if it does not exist. For namespaced kinds, it is in liqonet's
// namespace.
func Find[T Object](ctx context.Context, c *Cluster, name string) (found T, err error) {
	t, err := c.find(ctx, found, c.Namespace, name)
	found, _ = t.live.(T)
	return found, err
}

// All returns the objects of that type that match a label selector. For namespaced kinds, they are in liqonet's
// namespace.
func All[T Object](ctx context.Context, c *Cluster, selector string) ([]T, error) {
	var kind T
	objects, err := c.list(ctx, kind, selector)
	all := make([]T, len(objects))
	for i, o := range objects {
		all[i], _ = o.(T)
	}
	return all, err
}

// AllKinds returns the objects in liqonet's namespace that match a label selector, by kind. unread has the errors of
// the kinds that could not be read.
func (c *Cluster) AllKinds(ctx context.Context, selector string) (objects map[string][]Object, unread map[string]error) {
	objects, unread = make(map[string][]Object), make(map[string]error)
	for _, like := range append(namespacedKinds(), &corev1.Pod{}) {
		kind := kindOf(like).Kind
		all, err := c.list(ctx, like, selector)
		if err != nil {
			unread[kind] = err
			continue
		}
		objects[kind] = all
	}
	return objects, unread
}

// list lists objects of like's type; like may be a nil pointer.
func (c *Cluster) list(ctx context.Context, like Object, selector string) ([]Object, error) {
	r, _, err := c.resource(like, c.Namespace)
	if err != nil {
		return nil, err
	}
	all, _, err := r.list(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("list every %s of cluster %q: %w", kindOf(like).Kind, c.Context, err)
	}
	return all, nil
}
