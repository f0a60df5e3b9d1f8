package peering

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// pods are the settings for the pods of liqonet: what this run asks for, else what the installation has.
func (s *site) pods() templates.Pods { return s.Pods.Over(s.found.pods) }

// readPods returns the settings of an installation for its pods, which its DaemonSet has.
func readPods(ctx context.Context, c *cluster.Cluster) (templates.Pods, error) {
	set, err := cluster.Find[*appsv1.DaemonSet](ctx, c, records.NodeName)
	if set == nil || err != nil {
		return templates.Pods{}, err
	}
	pods, err := templates.ReadPods(set)
	if err != nil {
		return pods, hint.With(fmt.Errorf("DaemonSet %s/%s of cluster %q: %w", c.Namespace, records.NodeName, c.Context, err),
			"remove the annotation, then run liqoctl network init --update with the settings for pods")
	}
	return pods, nil
}
