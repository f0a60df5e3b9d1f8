package inventory

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/ipam/translate"
)

// Translation returns the address translation between a cluster and its peers, from the records of the cluster. A
// peering whose record does not decode is no error: see translate.Read.
func Translation(ctx context.Context, c *kube.Cluster) (translate.Cluster, error) {
	all, err := kube.All[*corev1.ConfigMap](ctx, c, "")
	if err != nil {
		return translate.Cluster{}, err
	}
	t, err := translate.Read(all)
	switch {
	case errors.Is(err, translate.ErrNoFabric):
		return t, NotInstalled(ctx, c)
	case err != nil:
		return t, fmt.Errorf("records of cluster %q: %w", c.Context, err)
	}
	return t, nil
}
