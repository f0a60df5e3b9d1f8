package plan

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/templates"
)

// DifferenceError reports that the existing configuration differs from the requested one, and that nothing was changed.
type DifferenceError struct {
	Clusters []string // contexts
	Lines    []Line
}

func (e *DifferenceError) Error() string {
	what := "the peering of " + strings.Join(e.Clusters, " and ")
	if len(e.Clusters) == 1 {
		what = "cluster " + e.Clusters[0]
	}
	return what + " has other settings:\n" + strings.Join(Columns(e.Lines, Line.Flat), "\n")
}

// Unstaged implements progress.Unstaged.
func (*DifferenceError) Unstaged() {}

// Hint suggests the flag that applies the differences.
func (e *DifferenceError) Hint() string {
	return "add --update to apply them, or --dry-run -o wide to see every object"
}

// difference returns the error for a plan's changes.
func (p Plan) difference() *DifferenceError {
	e := &DifferenceError{Lines: p.Intent()}
	for _, c := range p.Clusters {
		e.Clusters = append(e.Clusters, c.Context)
	}
	return e
}

// DecideDifferences returns an error for the changes of existing configuration in a plan, unless the user consents to
// them.
func (p Plan) DecideDifferences(consent bool) (string, error) {
	e := p.Differing().difference()
	switch {
	case len(e.Lines) == 0:
		return "no differences", nil
	case !consent:
		return "", e
	}
	const shown = 3
	changes := Joined(e.Lines[:min(shown, len(e.Lines))], func(l Line) string { return l.Flat() + " " + l.Value() })
	if more := len(e.Lines) - shown; more > 0 {
		changes += fmt.Sprintf(" and %d more", more)
	}
	return "applies " + changes, nil
}

// Differing returns the part of a plan that changes existing configuration. Adding missing objects needs no consent;
// nor does completing values that an interrupted run left open.
func (p Plan) Differing() Plan {
	d := Plan{Clusters: slices.Clone(p.Clusters)}
	for i := range d.Clusters {
		d.Clusters[i].Changes = nil
		for _, c := range p.Clusters[i].Changes {
			c.Fields = slices.DeleteFunc(slices.Clone(c.Fields), func(f kube.FieldChange) bool { return !asks(c, f) })
			if c.Action == kube.Changed && len(c.Fields) > 0 {
				d.Clusters[i].Changes = append(d.Clusters[i].Changes, c)
			}
		}
	}
	return d
}

// asks reports whether the change of a field needs the user's consent. Keys follow from the rest, and so do
// reservations other than those that the user requests.
func asks(c kube.Change, f kube.FieldChange) bool {
	if c.Name == records.IPAMName {
		r, is := reservationOf(f)
		return !is && f.Path == poolsPath || is && f.New != nil && r.Owner == ipam.Cluster && r.Purpose == ipam.Reserved
	}
	return c.Kind != "Secret" && !leftOpen(c.Name, f) && !ofKey(f.Path)
}

// ofKey reports whether a field follows from the keys of a gateway: that of the driver of a tunnel in a record, or the
// identifier in a Deployment.
func ofKey(path string) bool {
	return path == keyPath || strings.HasPrefix(index.ReplaceAllString(path, ""), "gateways.tunnels.tunnel.")
}

// keyPath is that of the identifier of its keys in a gateway's Deployment.
const keyPath = "spec.template.metadata.annotations." + templates.AnnotationKey

// leftOpen reports whether a field of a record was left open by the run that created it, or is left open by a dry run,
// such as a new key.
func leftOpen(name string, field kube.FieldChange) bool {
	return field.Later || decidedLater(name, field.Path) && unset(field.Old)
}

// unset reports whether a field of a record has no value yet.
func unset(value any) bool { return value == nil || reflect.ValueOf(value).IsZero() }

// index matches the index of a list element in the path of a field.
var index = regexp.MustCompile(`\[\d+\]`)

// decidedLater reports whether a field of a record, in the ConfigMap with that name, is known only after its cluster or
// the peer has answered.
func decidedLater(name, path string) bool {
	id, _ := records.IdentityOf(name)
	return ofKey(path) || laterNames[id.Component][index.ReplaceAllString(path, "")] != ""
}

// laterNames are the subjects of fields that are known only during the operation, by the record that has them.
var laterNames = map[string]map[string]string{
	records.ComponentFabric:  {"overlay.kind": "overlay", "mtu": "MTU"},
	records.ComponentPeering: {"mtu": "MTU", endpointsOf("gateways.tunnels"): "endpoints", "gateways.tunnels.webSocket": "endpoints"},
}

// laterName returns the subject of a field, of the object with that name, that is known only during the operation: of a
// key, unless it is one of laterNames.
func laterName(name, path string) string {
	id, _ := records.IdentityOf(name)
	return cmp.Or(laterNames[id.Component][index.ReplaceAllString(path, "")], "public keys")
}

// endpointsOf returns the path of a tunnel's endpoints.
func endpointsOf(tunnel string) string { return tunnel + ".endpoints" }

// configured returns the fields of a change without those that follow from others.
func configured(fields []kube.FieldChange) []kube.FieldChange {
	var some []kube.FieldChange
	for _, field := range fields {
		if !slices.ContainsFunc([]string{templates.AnnotationDigest, appsv1.DeprecatedTemplateGeneration}, func(annotation string) bool {
			return strings.HasPrefix(field.Path, "metadata.annotations."+annotation)
		}) {
			field.Path = strings.TrimPrefix(field.Path, "data."+records.DataKey+".")
			field.Later = field.New == "" && ofKey(field.Path)
			some = append(some, field)
		}
	}
	return some
}

// Overtaken returns the error for a record, in the ConfigMap with that name, that another run has changed since this
// run compared it with the desired one.
func Overtaken[T records.Document](c *kube.Cluster, name string, live, desired T) error {
	var objects [2]*corev1.ConfigMap
	for i, record := range []T{live, desired} {
		text, err := records.Draft(record)
		if err != nil {
			return fmt.Errorf("ConfigMap %s/%s of cluster %q: %w", c.Namespace, name, c.Context, err)
		}
		objects[i] = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{records.DataKey: text}}
	}
	change := kube.Change{Kind: "ConfigMap", Name: name, Action: kube.Changed}
	for _, field := range configured(kube.Differences(objects[0], objects[1])) {
		if !leftOpen(name, field) {
			change.Fields = append(change.Fields, field)
		}
	}
	return Plan{Clusters: []ClusterPlan{{
		Context: c.Context, Changes: []kube.Change{change}, peerings: peeringsOf(objects[:1], objects[1:]),
	}}}.difference()
}
