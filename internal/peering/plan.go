package peering

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/store"
)

// Plan is what an operation would change. It comes from a dry run of the operation itself.
type Plan struct {
	Clusters []ClusterPlan `json:"clusters"`
}

// Empty reports whether nothing would change.
func (p Plan) Empty() bool {
	return !slices.ContainsFunc(p.Clusters, func(c ClusterPlan) bool { return len(c.Changes) > 0 })
}

// verbs are what is to be done, as a user says it.
var verbs = map[cluster.Action]string{cluster.Created: "create", cluster.Changed: "change", cluster.Deleted: "delete"}

// String is the plan for people, a line for each object and each field.
func (p Plan) String() string {
	var b strings.Builder
	for _, c := range p.Clusters {
		b.WriteString(c.String())
	}
	return b.String()
}

// String is the plan of one cluster for people.
func (p ClusterPlan) String() string {
	if len(p.Changes) == 0 {
		return fmt.Sprintf("cluster %q: no changes\n", p.Context)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "cluster %q, namespace %s:\n", p.Context, p.Namespace)
	for _, change := range p.Changes {
		fmt.Fprintf(&b, "  %s %s %s\n", verbs[change.Action], change.Kind, change.Name)
		for _, field := range change.Fields {
			fmt.Fprintf(&b, "    %s\n", field)
		}
	}
	return b.String()
}

// ClusterPlan is what would change in one cluster. Fields of a record that only the operation can decide are
// cluster.ErrLater's text.
type ClusterPlan struct {
	Context   string           `json:"context"`
	Namespace string           `json:"namespace"`
	Changes   []cluster.Change `json:"changes"` // in the order in which they are made
	// Before and After are the records that kernels follow; After is nil where the operation has to decide some of them.
	Before records.Set  `json:"-"`
	After  *records.Set `json:"-"`
}

// planned is the plan of one cluster from its dry run.
func planned(ctx context.Context, c *cluster.Cluster) (ClusterPlan, error) {
	p := ClusterPlan{Context: c.Context, Namespace: c.Namespace, Changes: []cluster.Change{}}
	all := c.Planned()
	var err error
	for _, change := range all {
		switch {
		case change.Kind == "ConfigMap" && change.Name == records.IPAMName:
			change.Fields, err = reservationChanges(change)
		case change.Action == cluster.Created:
			change.Fields, err = recordFields(change.After)
		default:
			if change.Fields = configured(change.Fields); change.Action == cluster.Changed && len(change.Fields) == 0 {
				continue
			}
		}
		if err != nil {
			return p, fmt.Errorf("plan for %s of cluster %q: %w", change.Name, c.Context, err)
		}
		p.Changes = append(p.Changes, change.Change)
	}
	return p, p.readRecords(ctx, c, all)
}

// readRecords reads the records that kernels follow, from the cluster and from its dry run.
func (p *ClusterPlan) readRecords(ctx context.Context, c *cluster.Cluster, changes []cluster.Planned) error {
	leases, err := inventory.Leases(ctx, c)
	if err != nil {
		return err
	}
	nodes, _ := inventory.Reports(leases) // those that are damaged are left out, as gateways do
	slices.SortFunc(nodes, func(a, b records.Node) int { return strings.Compare(a.Name, b.Name) })
	before, err := c.Kube.CoreV1().ConfigMaps(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the records of cluster %q: %w", c.Context, err)
	}
	objects := make([]*corev1.ConfigMap, len(before.Items))
	for i := range before.Items {
		objects[i] = &before.Items[i]
	}
	p.Before, _ = recordSet(objects, nodes)
	if objects, err = cluster.All[*corev1.ConfigMap](ctx, c, ""); err != nil {
		return err
	}
	after, open := recordSet(objects, nodes)
	if !slices.ContainsFunc(changes, func(p cluster.Planned) bool { return p.Kind == "ConfigMap" && slices.Contains(open, p.Name) }) {
		p.After = &after
	}
	return nil
}

// recordSet are the records that kernels follow. Those that are damaged are left out, as helpers do, and so are those which
// are not decided; open are the names of both.
func recordSet(objects []*corev1.ConfigMap, nodes []records.Node) (set records.Set, open []string) {
	set = records.Set{Nodes: nodes, Gateways: make(map[string]records.Gateway)}
	for _, cm := range objects {
		text := cm.Data[records.DataKey]
		switch id, _ := records.IdentityOf(cm.Name); id.Component {
		case records.ComponentFabric:
			if f, err := records.Decode[records.Fabric](text); err == nil && f.Overlay.Kind != "" {
				set.Fabric = &f
				continue
			}
		case records.ComponentPeering:
			if p, err := records.Decode[records.Peering](text); err == nil {
				set.Peerings = append(set.Peerings, p)
				continue
			}
		case records.ComponentGateway:
			if g, err := records.Decode[records.Gateway](text); err == nil {
				set.Gateways[id.Peering] = g
			}
			continue // what it has not reported, no operation decides
		default:
			continue
		}
		open = append(open, cm.Name)
	}
	slices.SortFunc(set.Peerings, func(a, b records.Peering) int { return strings.Compare(a.Name, b.Name) })
	return set, open
}

// recordFields lists the fields of a record that is created; none for other objects.
func recordFields(object cluster.Object) ([]string, error) {
	cm, ok := object.(*corev1.ConfigMap)
	id, known := records.IdentityOf(object.GetName())
	if !ok || !known || cm.Data[records.DataKey] == "" {
		return nil, nil
	}
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(cm.Data[records.DataKey]), &fields); err != nil {
		return nil, err
	}
	flat := make(map[string]string)
	flatten(flat, "", fields)
	server := flat["role"] == `"`+string(records.Server)+`"`
	for _, path := range decidedLater(id.Component) {
		if server && path == "tunnel.endpoints" {
			continue // it has none
		}
		if v := flat[path]; v == "" || v == `""` || v == "0" {
			flat[path] = cluster.ErrLater.Error()
		}
	}
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(flat)) {
		lines = append(lines, path+": "+flat[path])
	}
	return lines, nil
}

// flatten writes the values of nested maps, as JSON, under their paths.
func flatten(into map[string]string, path string, value any) {
	if m, ok := value.(map[string]any); ok {
		for key, v := range m {
			flatten(into, strings.TrimPrefix(path+"."+key, "."), v)
		}
		return
	}
	if text, err := json.Marshal(value); err == nil {
		into[path] = string(text)
	}
}

// reservationChanges lists the reservations that are made and released.
func reservationChanges(p cluster.Planned) ([]string, error) {
	held := func(o cluster.Object) ([]ipam.Reservation, error) {
		cm, ok := o.(*corev1.ConfigMap)
		if !ok {
			return nil, nil
		}
		r, err := store.Decode(cm.Data[records.DataKey])
		if err != nil {
			return nil, err
		}
		return r.List(), nil
	}
	before, err := held(p.Before)
	if err != nil {
		return nil, err
	}
	after, err := held(p.After)
	var lines []string
	list := func(action string, all, without []ipam.Reservation) {
		for _, r := range all {
			if !slices.Contains(without, r) {
				lines = append(lines, fmt.Sprintf("%s %s (%s)", action, r.Range, r.Use()))
			}
		}
	}
	list("release", before, after)
	list("reserve", after, before)
	return lines, err
}

// planning is the Reporter of a dry run: stages that change nothing are not worth a line.
type planning struct{ Reporter }

// Stage implements Reporter.
func (planning) Stage(string) {}

// Done implements Reporter.
func (planning) Done(string, string, time.Duration) {}

// quiet is the Reporter of a dry run that is part of another operation, which reports the rest.
type quiet struct{ planning }

// Note implements Reporter.
func (quiet) Note(string) {}

// Warn implements Reporter.
func (quiet) Warn(string, string) {}

// dry is a copy of the site for a dry run, in which all changes are wanted.
func (s site) dry(cluster *cluster.Cluster) site {
	s.Cluster, s.Update, s.reporter, s.changes = cluster, true, quiet{}, nil
	return s
}

// dry is a copy of the connector for a dry run of what follows the comparison.
func (c *connector) dry(of func(*cluster.Cluster) *cluster.Cluster) *connector {
	local, remote := *c.local, *c.remote
	local.site, remote.site = local.dry(of(local.Cluster)), remote.dry(of(remote.Cluster))
	local.peer, remote.peer = &remote, &local
	d := *c
	d.reporter, d.local, d.remote = quiet{}, &local, &remote
	return &d
}

// rehearse carries out what writes.
func (c *connector) rehearse(ctx context.Context) error {
	if _, err := c.install(ctx); err != nil {
		return err
	}
	if err := c.both(ctx, (*end).settle); err != nil {
		return err
	}
	if _, err := c.prepare(ctx); err != nil {
		return err
	}
	_, err := c.configure(ctx)
	return err
}

// planOf is the plan from the dry runs of clusters.
func planOf(ctx context.Context, clusters ...*cluster.Cluster) (Plan, error) {
	var p Plan
	for _, c := range clusters {
		one, err := planned(ctx, c)
		if err != nil {
			return Plan{}, err
		}
		p.Clusters = append(p.Clusters, one)
	}
	return p, nil
}

// later returns nil for what a dry run cannot wait for.
func later(err error) error {
	if errors.Is(err, cluster.ErrLater) {
		return nil
	}
	return err
}
