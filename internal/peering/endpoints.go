package peering

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/desired"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/records"
)

// awaitEndpoints waits until the server's Service has endpoints for every tunnel.
func (m *member) awaitEndpoints(ctx context.Context, half desired.Half) (endpoints map[records.TunnelID][]string, err error) {
	name := records.ServiceName(m.peering)
	what := fmt.Sprintf("the endpoint of Service %s/%s", m.cluster.Namespace, name)
	err = m.cluster.FailFast(ctx, inventory.GatewaysSelector(m.peering), func(ctx context.Context) error {
		return kube.Wait(ctx, m.cluster, kube.Named(name), what, func(all []*corev1.Service) (missing string, err error) {
			if len(all) == 0 {
				return "it does not exist", nil
			}
			endpoints, missing = half.EndpointsAt(all[0])
			return missing, nil
		})
	})
	return endpoints, plan.Later(hint.With(err, "if the cluster has no load balancers: --gw-server-service-type NodePort"))
}
