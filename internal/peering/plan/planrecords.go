package plan

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
)

// readRecords reads the records that define kernel states, from the cluster and from its dry run.
func (p *ClusterPlan) readRecords(ctx context.Context, c *kube.Cluster, changes []kube.Planned) error {
	leases, err := inventory.Leases(ctx, c)
	if err != nil {
		return err
	}
	nodes, _ := inventory.Reports(leases) // damaged ones are omitted, as in gateways
	slices.SortStableFunc(nodes, func(a, b records.Node) int { return strings.Compare(a.Name, b.Name) })
	existing, err := kube.All[*corev1.ConfigMap](ctx, c.Live(), "")
	if err != nil {
		return err
	}
	objects, err := kube.All[*corev1.ConfigMap](ctx, c, "")
	if err != nil {
		return err
	}
	p.Before, _ = inventory.RecordSet(existing, nodes)
	p.peerings = peeringsOf(existing, objects)
	after, open := inventory.RecordSet(objects, nodes)
	if !slices.ContainsFunc(changes, func(p kube.Planned) bool { return p.Kind == "ConfigMap" && slices.Contains(open, p.Name) }) {
		p.After = &after
	}
	return nil
}

// peeringsOf returns the records of peerings before and after an operation.
func peeringsOf(before, after []*corev1.ConfigMap) map[string]recorded {
	all := make(map[string]recorded)
	for i, objects := range [][]*corev1.ConfigMap{before, after} {
		for _, cm := range objects {
			id, _ := records.IdentityOf(cm.Name)
			p, _, err := records.ReadText[records.Peering](id.Component, cm.Data[records.DataKey])
			if err != nil || id.Component != records.ComponentPeering {
				continue
			}
			r := all[id.Peering]
			if i == 0 {
				r.before = &p
			} else {
				r.after = &p
			}
			all[id.Peering] = r
		}
	}
	return all
}

// recordFields lists the fields of a record that is created; none for other objects.
func recordFields(object kube.Object) ([]kube.FieldChange, error) {
	cm, ok := object.(*corev1.ConfigMap)
	_, known := records.IdentityOf(object.GetName())
	if !ok || !known || cm.Data[records.DataKey] == "" {
		return nil, nil
	}
	fields, err := records.Fields(cm.Data[records.DataKey])
	if err != nil {
		return nil, err
	}
	flat := make(map[string]any)
	flatten(flat, "", fields)
	for _, path := range slices.Collect(maps.Keys(flat)) {
		// The client's record has no endpoints until the server has some. Every tunnel has a listenPort.
		if tunnel, ok := strings.CutSuffix(path, ".listenPort"); ok && flat["role"] == string(records.Client) {
			flat[endpointsOf(tunnel)] = cmp.Or(flat[endpointsOf(tunnel)], "")
		}
	}
	var changes []kube.FieldChange
	for _, path := range slices.Sorted(maps.Keys(flat)) {
		later := decidedLater(cm.Name, path) && unset(flat[path])
		changes = append(changes, kube.FieldChange{Path: path, New: flat[path], Initial: true, Later: later})
	}
	return changes, nil
}

// flatten stores the values of nested maps, and of lists of gateways and tunnels, under their paths.
func flatten(into map[string]any, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, v := range v {
			flatten(into, strings.TrimPrefix(path+"."+key, "."), v)
		}
		return
	case []any:
		if path == "gateways" || strings.HasSuffix(path, ".tunnels") {
			for i, v := range v {
				flatten(into, fmt.Sprintf("%s[%d]", path, i), v)
			}
			return
		}
	}
	into[path] = value
}
