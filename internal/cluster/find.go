package cluster

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Find returns the object of that type and name, of a namespaced kind the one in liqonet's namespace; nil: there is none.
func Find[T Object](ctx context.Context, c *Cluster, name string) (found T, err error) {
	r, err := c.resource(found, c.Namespace)
	if err != nil {
		return found, err
	}
	object, err := r.get(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return found, nil
	case err != nil:
		return found, fmt.Errorf("read %s %s of cluster %q: %w", reflect.TypeFor[T]().Elem().Name(), name, c.Context, err)
	}
	found, _ = object.(T)
	return found, nil
}

// All returns the objects of that type which a label selector matches, of a namespaced kind those in liqonet's namespace.
func All[T Object](ctx context.Context, c *Cluster, selector string) ([]T, error) {
	var kind T
	r, err := c.resource(kind, c.Namespace)
	if err != nil {
		return nil, err
	}
	objects, _, err := r.list(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("list %ss of cluster %q: %w", reflect.TypeFor[T]().Elem().Name(), c.Context, err)
	}
	all := make([]T, len(objects))
	for i, o := range objects {
		all[i], _ = o.(T)
	}
	return all, nil
}
