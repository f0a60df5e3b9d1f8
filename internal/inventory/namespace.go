package inventory

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/kube"
)

// deletionTimeout limits the wait for the deletion of a namespace. After a reset the deletion takes some seconds: the
// namespace controller waits for five before it begins.
const deletionTimeout = 15 * time.Second

// AwaitNamespace waits for the end of the namespace's deletion, if it is being deleted: no objects can be created in
// such a namespace.
func AwaitNamespace(ctx context.Context, c *kube.Cluster, flagPrefix string) error {
	name := c.Namespace
	found, err := kube.Find[*corev1.Namespace](ctx, c, name)
	switch {
	case apierrors.IsForbidden(err): // users who only connect need no permission for namespaces
		return nil
	case err != nil || found == nil || found.DeletionTimestamp == nil:
		return err
	}
	inner, cancel := context.WithTimeout(ctx, deletionTimeout)
	defer cancel()
	err = kube.Wait(inner, c, kube.Named(name), "Namespace "+name, func(all []*corev1.Namespace) (string, error) {
		if len(all) > 0 && all[0].DeletionTimestamp != nil {
			return "it is being deleted" + kube.Remains(all[0]), nil
		}
		return "", nil
	})
	if wait, ok := errors.AsType[*kube.WaitError](err); ok && ctx.Err() == nil {
		return hint.With(fmt.Errorf("use Namespace %s of cluster %q: %s", name, c.Context, wait.Missing),
			fmt.Sprintf("run this again when it is gone, or use another one with --%snamespace", flagPrefix))
	}
	return err
}
