// Package plan has the plans of operations, which come from dry runs, and the differences between the existing and the
// desired configuration.
package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/store"
)

// Plan lists the changes that an operation would make. It is the result of a dry run of the operation itself.
type Plan struct {
	Clusters []ClusterPlan `json:"clusters"`
}

// verbs are the planned actions as shown to users.
var verbs = map[kube.Action]string{kube.Created: "create", kube.Changed: "change", kube.Deleted: "delete"}

// String formats the plan of one cluster, a line for each object and each field.
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

// ClusterPlan lists the changes in one cluster. Fields of a record that are known only during the operation have
// kube.ErrLater's text.
type ClusterPlan struct {
	Context   string        `json:"context"`
	Namespace string        `json:"namespace"`
	Changes   []kube.Change `json:"changes"` // in the order in which they are made
	// Before and After are the records from which kernel states are computed; After is nil if some of them are known
	// only during the operation.
	Before records.Set  `json:"-"`
	After  *records.Set `json:"-"`

	peerings map[string]recorded // by name
}

// planned returns the plan of one cluster from its dry run.
func planned(ctx context.Context, c *kube.Cluster) (ClusterPlan, error) {
	p := ClusterPlan{Context: c.Context, Namespace: c.Namespace, Changes: []kube.Change{}}
	all := c.Planned()
	var err error
	for _, change := range all {
		switch {
		case change.Kind == "ConfigMap" && change.Name == records.IPAMName:
			change.Fields, err = reservationChanges(change)
		case change.Action == kube.Created:
			change.Fields, err = recordFields(change.After)
		default:
			if change.Fields = configured(change.Fields); change.Action == kube.Changed && len(change.Fields) == 0 {
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

// reservationChanges lists reservations to add and to release, and changes of the pools.
func reservationChanges(p kube.Planned) ([]kube.FieldChange, error) {
	registry := func(o kube.Object) (*ipam.Registry, error) {
		if cm, ok := o.(*corev1.ConfigMap); ok {
			return store.Decode(cm.Data[records.DataKey])
		}
		return ipam.New(ipam.DefaultPools()...)
	}
	before, err := registry(p.Before)
	if err != nil {
		return nil, err
	}
	after, err := registry(p.After)
	if err != nil {
		return nil, err
	}
	var fields []kube.FieldChange
	if p.Action != kube.Deleted && !slices.Equal(before.Pools(), after.Pools()) {
		fields = append(fields, kube.FieldChange{Path: poolsPath, Old: pools(before.Pools()), New: pools(after.Pools())})
	}
	old, desired := before.List(), after.List()
	for _, r := range old {
		if !slices.Contains(desired, r) {
			fields = append(fields, kube.FieldChange{Path: "reservations", Verb: "release", Old: reservation(r)})
		}
	}
	for _, r := range desired {
		if !slices.Contains(old, r) {
			fields = append(fields, kube.FieldChange{Path: "reservations", Verb: "reserve", New: reservation(r)})
		}
	}
	return fields, nil
}

// pools and reservation are values of a registry as a plan prints them.
type (
	pools       []netip.Prefix
	reservation ipam.Reservation
)

// poolsPath is the path of the pools of a registry.
const poolsPath = "pools"

// reservationOf returns the reservation that a field adds or releases.
func reservationOf(f kube.FieldChange) (ipam.Reservation, bool) {
	r, is := cmp.Or(f.New, f.Old).(reservation)
	return ipam.Reservation(r), is
}

func (p pools) String() string { return Joined(p, netip.Prefix.String) }
func (r reservation) String() string {
	return fmt.Sprintf("%s (%s)", r.Range, ipam.Reservation(r).Use())
}

// Joined lists values as text.
func Joined[T any](all []T, text func(T) string) string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = text(one)
	}
	return strings.Join(texts, ", ")
}

// Of returns the plan from dry runs in clusters; err is the error of the dry runs.
func Of(ctx context.Context, err error, clusters ...*kube.Cluster) (Plan, error) {
	if err != nil {
		return Plan{}, err
	}
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

// Later returns nil for the error of a wait that a dry run cannot complete.
func Later(err error) error {
	if errors.Is(err, kube.ErrLater) {
		return nil
	}
	return err
}
