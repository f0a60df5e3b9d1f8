package plan

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// DifferenceError reports that the existing configuration differs from the requested one, and that nothing was changed.
type DifferenceError struct {
	Lines []string // one for each difference
}

func (e *DifferenceError) Error() string {
	return "the existing configuration differs:\n  " + strings.Join(e.Lines, "\n  ")
}

// Hint suggests the flag that applies the differences.
func (e *DifferenceError) Hint() string { return "apply the changes with --update" }

// DecideDifferences returns an error for differences, unless the user consents to them.
func DecideDifferences(lines []string, consent bool) (string, error) {
	switch {
	case len(lines) == 0:
		return "no differences", nil
	case !consent:
		return "", &DifferenceError{Lines: lines}
	}
	return fmt.Sprintf("%d differences, to be applied", len(lines)), nil
}

// Differences lists the changes of existing configuration in a plan. Adding missing objects needs no consent; nor does
// completing values that an interrupted run left open.
func (p ClusterPlan) Differences() []string {
	var lines []string
	for _, c := range p.Changes {
		if c.Action != kube.Changed || c.Name == records.IPAMName || c.Kind == "Secret" {
			continue // reservations and keys follow from the rest
		}
		for _, field := range c.Fields {
			if !leftOpen(c.Name, field) && !ofKey(c.Name, field) {
				lines = append(lines, p.line(c, field))
			}
		}
	}
	return lines
}

// line returns a difference in the form that users see.
func (p ClusterPlan) line(c kube.Change, field kube.FieldChange) string {
	return fmt.Sprintf("cluster %q: %s %s: %s", p.Context, c.Kind, c.Name, field)
}

// ofKey reports whether a field follows from the keys of a gateway.
func ofKey(name string, field kube.FieldChange) bool {
	return ofDriver(field.Path) && decidedLater(name, field.Path) || field.Path == keyPath
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
	return id.Component == records.ComponentPeering && ofDriver(path) || slices.Contains(map[string][]string{
		records.ComponentFabric:  {"overlay.kind", "mtu"},
		records.ComponentPeering: {"mtu", endpointsOf("gateways.tunnels")},
	}[id.Component], index.ReplaceAllString(path, ""))
}

// ofDriver reports whether a field belongs to the driver of a tunnel.
func ofDriver(path string) bool {
	return strings.HasPrefix(index.ReplaceAllString(path, ""), "gateways.tunnels.tunnel.")
}

// endpointsOf returns the path of a tunnel's endpoints.
func endpointsOf(tunnel string) string { return tunnel + ".endpoints" }

// configured returns the fields of a change without those that follow from others.
func configured(fields []kube.FieldChange) []kube.FieldChange {
	var some []kube.FieldChange
	for _, field := range fields {
		if !strings.HasPrefix(field.Path, "metadata.annotations."+templates.AnnotationDigest) {
			field.Path = strings.TrimPrefix(field.Path, "data."+records.DataKey+".")
			field.Later = field.New == "" && (ofDriver(field.Path) || field.Path == keyPath)
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
		objects[i] = &corev1.ConfigMap{Data: map[string]string{records.DataKey: text}}
	}
	p, change := ClusterPlan{Context: c.Context}, kube.Change{Kind: "ConfigMap", Name: name, Action: kube.Changed}
	var lines []string
	for _, field := range configured(kube.Differences(objects[0], objects[1])) {
		if !leftOpen(name, field) {
			lines = append(lines, p.line(change, field))
		}
	}
	return &DifferenceError{Lines: lines}
}
