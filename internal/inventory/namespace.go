package inventory

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
)

// farewell is how long a namespace that is being deleted is waited for: one that a reset has just begun to delete
// takes some seconds (the namespace controller rests for five before it begins).
const farewell = 15 * time.Second

// AwaitNamespace makes sure that the namespace is not one that is being deleted, in which nothing can be made.
func AwaitNamespace(ctx context.Context, c *cluster.Cluster, flagPrefix string) error {
	name := c.Namespace
	found, err := cluster.Find[*corev1.Namespace](ctx, c, name)
	switch {
	case apierrors.IsForbidden(err): // who may only connect need not see namespaces
		return nil
	case err != nil || found == nil || found.DeletionTimestamp == nil:
		return err
	}
	inner, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	err = cluster.Wait(inner, c, cluster.Named(name), "Namespace "+name, func(all []*corev1.Namespace) (string, error) {
		if len(all) > 0 && all[0].DeletionTimestamp != nil {
			return "it is being deleted" + cluster.Remains(all[0]), nil
		}
		return "", nil
	})
	if wait, ok := errors.AsType[*cluster.WaitError](err); ok && ctx.Err() == nil {
		return hint.With(fmt.Errorf("use Namespace %s of cluster %q: %s", name, c.Context, wait.Missing),
			fmt.Sprintf("run this again when it is gone, or use another one with --%snamespace", flagPrefix))
	}
	return err
}
