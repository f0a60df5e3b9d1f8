// Package verdict returns the state of a peering on a bench, like `network status`, from the objects of one cluster.
package verdict

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

// Of returns the state of a peering, from the reports of its gateways and of their witnesses. An unreadable report
// counts as none.
func Of(ctx context.Context, api kubernetes.Interface, gateways []records.GatewayID, mtu int, nodes ...string) (health.State, string, error) {
	each := make([][]health.Finding, len(gateways))
	for i, id := range gateways {
		o, err := observe(ctx, api, id)
		if err != nil {
			return "", "", err
		}
		o.MTU, o.Nodes = mtu, nodes
		each[i] = health.Gateway(o)
	}
	findings := health.Together(each)
	return health.StateOf(findings), health.Reason(findings, len(each)), nil
}

// observe reads the reports on a gateway.
func observe(ctx context.Context, api kubernetes.Interface, id records.GatewayID) (o health.Observation, err error) {
	maps := api.CoreV1().ConfigMaps(records.DefaultNamespace)
	report, err := maps.Get(ctx, id.StatusName(), metav1.GetOptions{})
	if err != nil {
		return o, fmt.Errorf("read the gateway's report: %w", err)
	}
	leases, err := api.CoordinationV1().Leases(records.DefaultNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return o, fmt.Errorf("list the leases of nodes: %w", err)
	}
	o.Witnesses = map[string]string{}
	if s, err := records.Decode[records.Status](report.Data[records.DataKey]); err == nil {
		o.Status, o.Age, o.Every = &s, time.Since(s.Time), time.Duration(s.Every)
	}
	if cm, err := maps.Get(ctx, id.Name(), metav1.GetOptions{}); err == nil {
		if g, err := records.Decode[records.Gateway](cm.Data[records.DataKey]); err == nil {
			o.GatewayNode = g.Node
		}
	}
	for _, l := range leases.Items {
		if fault, ok := witness(l, id); ok {
			o.Witnesses[*l.Spec.HolderIdentity] = fault
		}
	}
	return o, nil
}

// witness returns a node's report in its Lease on a gateway; ok is false if the node does not watch this gateway.
func witness(l coordinationv1.Lease, id records.GatewayID) (fault string, ok bool) {
	n, err := records.DecodeReport(l.Name, l.Spec.HolderIdentity, l.Annotations[records.AnnotationNode])
	if err != nil {
		return "", false
	}
	fault, ok = n.Witness[id]
	return fault, ok
}
