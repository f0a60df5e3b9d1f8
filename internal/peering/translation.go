package peering

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam/translate"
)

// Translation tells how addresses are called between a cluster and its peers, from the records of the cluster. A
// peering whose record cannot be read is no error: see translate.Decode.
func Translation(ctx context.Context, c *cluster.Cluster) (translate.Cluster, error) {
	all, err := cluster.All[*corev1.ConfigMap](ctx, c, "")
	if err != nil {
		return translate.Cluster{}, err
	}
	var fabric string
	peerings := make(map[string]string)
	for _, object := range all {
		text := object.Data[records.DataKey]
		switch id, _ := records.IdentityOf(object.Name); id.Component {
		case records.ComponentFabric:
			fabric = text
		case records.ComponentPeering:
			peerings[object.Name] = text
		}
	}
	if fabric == "" {
		return translate.Cluster{}, hint.With(fmt.Errorf("liqonet is not installed in namespace %q of cluster %q", c.Namespace, c.Context),
			"liqoctl network connect")
	}
	t, err := translate.Decode(fabric, peerings)
	if err != nil {
		return translate.Cluster{}, fmt.Errorf("records of cluster %q: %w", c.Context, err)
	}
	return t, nil
}
