package peering

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam/translate"
)

// Translation tells how addresses are called between a cluster and its peers, from the records of the cluster. A
// peering whose record cannot be read is no error: see translate.Decode.
func Translation(ctx context.Context, c *cluster.Cluster) (translate.Cluster, error) {
	list, err := c.Kube.CoreV1().ConfigMaps(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return translate.Cluster{}, fmt.Errorf("list the records of cluster %q: %w", c.Context, err)
	}
	var fabric string
	peerings := make(map[string]string)
	for _, object := range list.Items {
		text := object.Data[records.DataKey]
		switch id, _ := records.IdentityOf(object.Name); id.Component {
		case records.ComponentFabric:
			fabric = text
		case records.ComponentPeering:
			peerings[object.Name] = text
		}
	}
	if fabric == "" {
		return translate.Cluster{}, withHint(fmt.Errorf("liqonet is not installed in namespace %q of cluster %q", c.Namespace, c.Context),
			"liqoctl network connect")
	}
	t, err := translate.Decode(fabric, peerings)
	if err != nil {
		return translate.Cluster{}, fmt.Errorf("records of cluster %q: %w", c.Context, err)
	}
	return t, nil
}
