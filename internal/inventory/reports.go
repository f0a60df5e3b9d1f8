package inventory

import (
	"context"
	"errors"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
)

// Leases returns the Leases of the cluster's nodes.
func Leases(ctx context.Context, c *kube.Cluster) ([]*coordinationv1.Lease, error) {
	return kube.All[*coordinationv1.Lease](ctx, c, Selector(records.ComponentNode))
}

// Reports decodes the reports in Leases. The error names those that do not decode. A Lease without a report belongs to
// a helper that has just started.
func Reports(leases []*coordinationv1.Lease) ([]records.Node, error) {
	var nodes []records.Node
	var damaged []error
	for _, lease := range leases {
		text, ok := lease.Annotations[records.AnnotationNode]
		if !ok {
			continue
		}
		n, err := records.DecodeReport(lease.Name, lease.Spec.HolderIdentity, text)
		if err != nil {
			damaged = append(damaged, fmt.Errorf("read Lease %s/%s: %w", lease.Namespace, lease.Name, err))
			continue
		}
		nodes = append(nodes, n)
	}
	return nodes, errors.Join(damaged...)
}

// DecodeStatus decodes the status of a gateway; nil if it has not reported yet.
func DecodeStatus(c *kube.Cluster, object *corev1.ConfigMap) (*records.Status, error) {
	if object == nil || object.Data[records.DataKey] == "" {
		return nil, nil
	}
	return DecodeRecord[records.Status](c, object)
}

// AwaitStatus waits until missing returns "" for the status of a gateway, which is nil before the first report.
func AwaitStatus(ctx context.Context, c *kube.Cluster, id records.GatewayID, what string, missing func(*records.Status) string) error {
	return c.FailFast(ctx, GatewaySelector(id), func(ctx context.Context) error {
		return kube.Wait(ctx, c, kube.Named(id.StatusName()), what, func(all []*corev1.ConfigMap) (string, error) {
			if len(all) == 0 {
				return missing(nil), nil
			}
			status, err := DecodeStatus(c, all[0])
			if err != nil {
				return "", err
			}
			return missing(status), nil
		})
	})
}

// ReadyNodes returns the names of a cluster's Ready nodes.
func ReadyNodes(ctx context.Context, c *kube.Cluster) (map[string]bool, error) {
	nodes, err := kube.All[*corev1.Node](ctx, c, "")
	if err != nil {
		return nil, err
	}
	ready := make(map[string]bool)
	for _, n := range nodes {
		if kube.Ready(n) {
			ready[n.Name] = true
		}
	}
	return ready, nil
}

// NotYet describes nodes that are missing; "" for none.
func NotYet(nodes []string) string {
	if len(nodes) == 0 {
		return ""
	}
	return "not yet: node " + strings.Join(nodes, ", ")
}
