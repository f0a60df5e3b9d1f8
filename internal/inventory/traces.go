package inventory

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam/choose"
)

// Trace is a peering, or remaining state of one, in a cluster.
type Trace struct {
	Name      string
	ClusterID string // of the peer; "" if the record is missing or does not decode
}

// Traces returns every peering of which a cluster still has an object or a reservation, sorted by name. With an
// UnreadableError it returns those that have objects.
func Traces(ctx context.Context, c *kube.Cluster) ([]Trace, error) {
	objects, err := c.List(ctx, records.LabelPeering)
	if err != nil {
		return nil, err
	}
	found := make(map[string]Trace)
	for _, object := range objects {
		name := object.GetLabels()[records.LabelPeering]
		t := Trace{Name: name, ClusterID: found[name].ClusterID}
		if cm, ok := object.(*corev1.ConfigMap); ok && cm.Name == records.PeeringName(name) {
			// Peerings with damaged records can be removed as well.
			if p, err := records.Decode[records.Peering](cm.Data[records.DataKey]); err == nil {
				t.ClusterID = p.Peer.ClusterID
			}
		}
		found[name] = t
	}
	registry, err := Reservations(ctx, c)
	if err == nil {
		for _, name := range choose.ReservedPeerings(registry) {
			found[name] = Trace{Name: name, ClusterID: found[name].ClusterID}
		}
	}
	return slices.SortedStableFunc(maps.Values(found), func(a, b Trace) int { return strings.Compare(a.Name, b.Name) }), err
}

// TracesOf selects the traces of one peer: by its cluster ID, and by name those without a record.
func TracesOf(all []Trace, clusterID, name string) []string {
	var names []string
	for _, t := range all {
		if t.ClusterID != "" && t.ClusterID == clusterID || t.ClusterID == "" && t.Name == name {
			names = append(names, t.Name)
		}
	}
	return names
}
