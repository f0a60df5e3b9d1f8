package steps

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// DifferenceError says that the existing configuration differs from what was asked for, and that nothing was changed.
type DifferenceError struct {
	Lines []string // one for each difference
}

func (e *DifferenceError) Error() string {
	return "the existing configuration differs:\n  " + strings.Join(e.Lines, "\n  ")
}

// Hint names the flag that applies the differences.
func (e *DifferenceError) Hint() string { return "apply the changes with --update" }

// DecideDifferences is the end of a comparison: differences need the user's consent.
func DecideDifferences(lines []string, consent bool) (string, error) {
	switch {
	case len(lines) == 0:
		return "no differences", nil
	case !consent:
		return "", &DifferenceError{Lines: lines}
	}
	return fmt.Sprintf("%d differences, to be applied", len(lines)), nil
}

// Differences lists what a plan changes of what exists and is configuration. What is missing is completed without
// consent, and so is what an interrupted run left open.
func (p ClusterPlan) Differences() []string {
	var lines []string
	for _, c := range p.Changes {
		if c.Action == cluster.Changed && c.Kind == "Secret" && c.Name == records.TranslationName {
			lines = append(lines, fmt.Sprintf("cluster %q: the certificate authority of the translation service ends soon and is replaced", p.Context))
		}
		if c.Action != cluster.Changed || c.Name == records.IPAMName || c.Kind == "Secret" {
			continue // reservations and keys follow from the rest
		}
		for _, field := range c.Fields {
			if !opened(c.Name, field) {
				lines = append(lines, fmt.Sprintf("cluster %q: %s %s: %s", p.Context, c.Kind, c.Name, field))
			}
		}
	}
	return lines
}

// opened reports whether a field of a record was left open by the run that created it, or is by a dry run: a new key's.
func opened(name, field string) bool {
	id, _ := records.IdentityOf(name)
	return strings.HasSuffix(field, " -> "+cluster.ErrLater.Error()) || slices.ContainsFunc(decidedLater(id.Component), func(path string) bool {
		return strings.HasPrefix(field, path+": none -> ") || strings.HasPrefix(field, path+`: "" -> `) || strings.HasPrefix(field, path+": 0 -> ")
	})
}

// decidedLater are the fields of a record that can be decided only when its cluster, or the peer, has answered.
func decidedLater(component string) []string {
	switch component {
	case records.ComponentFabric:
		return []string{"overlay.kind", "mtu"}
	case records.ComponentPeering:
		return []string{"mtu", "peer.publicKey", "tunnel.endpoints"}
	}
	return nil
}

// configured are the fields of a change without those that follow from others.
func configured(fields []string) []string {
	var some []string
	for _, field := range fields {
		if !strings.HasPrefix(field, "metadata.annotations."+templates.AnnotationDigest) {
			field = strings.TrimPrefix(field, "data."+records.DataKey+".")
			if old, none := strings.CutSuffix(field, ` -> ""`); none && strings.HasPrefix(field, "peer.publicKey:") {
				field = old + " -> " + cluster.ErrLater.Error()
			}
			some = append(some, field)
		}
	}
	return some
}

// Overtaken is the error for a record, in the ConfigMap of that name, that differs from the one that this run wants and has
// compared before.
func Overtaken[T records.Document](c *cluster.Cluster, name string, live, wanted T) error {
	var objects [2]*corev1.ConfigMap
	for i, record := range []T{live, wanted} {
		text, err := records.Encode(record)
		if err != nil {
			return fmt.Errorf("ConfigMap %s/%s of cluster %q: %w", c.Namespace, name, c.Context, err)
		}
		objects[i] = &corev1.ConfigMap{Data: map[string]string{records.DataKey: text}}
	}
	p := ClusterPlan{Context: c.Context, Changes: []cluster.Change{{
		Kind: "ConfigMap", Name: name, Action: cluster.Changed, Fields: configured(cluster.Differences(objects[0], objects[1])),
	}}}
	return &DifferenceError{Lines: p.Differences()}
}
