package inventory

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/records"
)

// Trace is a peering, or what is left of one, in a cluster.
type Trace struct {
	Name      string
	ClusterID string // of the peer; "" where its document is gone or cannot be read
}

// Traces finds every peering of which a cluster still has anything: an object or a reservation. Sorted by name. With an
// UnreadableError come those that have objects.
func Traces(ctx context.Context, c *cluster.Cluster) ([]Trace, error) {
	objects, err := c.List(ctx, records.LabelPeering)
	if err != nil {
		return nil, err
	}
	found := make(map[string]Trace)
	for _, object := range objects {
		name := object.GetLabels()[records.LabelPeering]
		t := found[name]
		t.Name = name
		if cm, ok := object.(*corev1.ConfigMap); ok && cm.Name == records.PeeringName(name) {
			// A damaged document is removed like any other.
			if p, err := records.Decode[records.Peering](cm.Data[records.DataKey]); err == nil {
				t.ClusterID = p.Peer.ClusterID
			}
		}
		found[name] = t
	}
	registry, err := Reservations(ctx, c)
	if err == nil {
		for _, name := range ReservedPeerings(registry) {
			t := found[name]
			t.Name = name
			found[name] = t
		}
	}
	all := make([]Trace, 0, len(found))
	for _, t := range found {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b Trace) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// TracesOf chooses what belongs to one peer: by its cluster's ID, and by name what has no document any more.
func TracesOf(all []Trace, clusterID, name string) []string {
	var names []string
	for _, t := range all {
		if t.ClusterID != "" && t.ClusterID == clusterID || t.ClusterID == "" && t.Name == name {
			names = append(names, t.Name)
		}
	}
	return names
}
