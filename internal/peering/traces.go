package peering

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/records"
)

// trace is a peering, or what is left of one, in a cluster.
type trace struct {
	name      string
	clusterID string // of the peer; "" where its document is gone or cannot be read
}

// traces finds every peering of which a cluster still has anything: an object or a reservation. Sorted by name.
func traces(ctx context.Context, c *cluster.Cluster) ([]trace, error) {
	objects, err := c.List(ctx, records.LabelPeering)
	if err != nil {
		return nil, err
	}
	found := make(map[string]trace)
	for _, object := range objects {
		name := object.GetLabels()[records.LabelPeering]
		t := found[name]
		t.name = name
		if cm, ok := object.(*corev1.ConfigMap); ok && cm.Name == records.PeeringName(name) {
			// A damaged document is removed like any other.
			if p, err := records.Decode[records.Peering](cm.Data[records.DataKey]); err == nil {
				t.clusterID = p.Peer.ClusterID
			}
		}
		found[name] = t
	}
	registry, err := loadReservations(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, name := range reservedPeerings(registry) {
		t := found[name]
		t.name = name
		found[name] = t
	}
	all := make([]trace, 0, len(found))
	for _, t := range found {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b trace) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// tracesOf chooses what belongs to one peer: by its cluster's ID, and by name what has no document any more.
func tracesOf(all []trace, clusterID, name string) []string {
	var names []string
	for _, t := range all {
		if t.clusterID != "" && t.clusterID == clusterID || t.clusterID == "" && t.name == name {
			names = append(names, t.name)
		}
	}
	return names
}
