//go:build linux

package helper

import (
	"strings"

	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/netops"
)

// AddDrift counts and reports objects with external changes that one pass restores.
func (r *Reconciler) AddDrift(objects ...Drifted) {
	if len(objects) == 0 {
		return
	}
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = o.name
		r.Metrics.drift.WithLabelValues(o.kind).Inc()
	}
	r.log.Warn("drift detected, restoring", "objects", names)
	r.Event(publish.DriftRestored, "others changed, restored: "+strings.Join(names, ", "))
	r.Drift = r.Drift.Add(publish.Now(), names)
}

// Drifted is an object with an external change.
type Drifted struct{ kind, name string }

// TunnelObject returns the object of a tunnel's link, keys and peer, which are not part of a plan.
func TunnelObject(link string) Drifted { return Drifted{"tunnel", "tunnel " + link} }

// drifted returns the objects in which the kernel differs from the state that the last pass reached. Changes due to new
// records are not included: that state was computed from the earlier records.
func drifted(have, reached netops.State) []Drifted {
	var objects []Drifted
	for _, s := range netops.Diff(have, reached.Reachable(have)).Steps {
		objects = append(objects, Drifted{kind: s.Kind(), name: nameOf(s)})
	}
	return objects
}

// nameOf returns a step's object in one line; for a firewall, the first command of its transaction.
func nameOf(s netops.Step) string {
	name, commands, several := strings.Cut(s.Object.String(), "\n")
	if several {
		name, _, _ = strings.Cut(strings.TrimSpace(commands), "\n")
	}
	return name
}
