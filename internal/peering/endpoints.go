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

// awaitEndpoints waits until the server's Services have endpoints for every tunnel, and addresses for WebSocket: those
// that the settings want.
func (m *member) awaitEndpoints(ctx context.Context, half desired.Half) (err error) {
	if m.settings.UsesUDP() {
		err = m.awaitService(ctx, records.ServiceName(m.peering), func(svc *corev1.Service) (missing string) {
			m.endpoints, missing = half.EndpointsAt(svc)
			return missing
		})
	}
	switch {
	case err != nil || !m.settings.CarriesWebSocket():
		return err
	case *m.settings.Complete().Ingress != "":
		m.webSocket, _ = half.WebSocketAt(nil)
		return nil
	}
	return m.awaitService(ctx, records.WebSocketName(m.peering), func(svc *corev1.Service) (missing string) {
		m.webSocket, missing = half.WebSocketAt(svc)
		return missing
	})
}

// awaitService waits until a Service has addresses; find returns what is missing.
func (m *member) awaitService(ctx context.Context, name string, find func(*corev1.Service) (missing string)) error {
	what := fmt.Sprintf("the endpoint of Service %s/%s", m.cluster.Namespace, name)
	err := m.cluster.FailFast(ctx, inventory.GatewaysSelector(m.peering), func(ctx context.Context) error {
		return kube.Wait(ctx, m.cluster, kube.Named(name), what, func(all []*corev1.Service) (missing string, err error) {
			if len(all) == 0 {
				return "it does not exist", nil
			}
			return find(all[0]), nil
		})
	})
	return plan.Later(hint.With(err, "if the cluster has no load balancers: --gw-server-service-type NodePort"))
}
