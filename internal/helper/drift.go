//go:build linux

package helper

import (
	"log/slog"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
)

// Drift counts external changes of liqonet's kernel objects, which this helper restores.
type Drift struct {
	log       *slog.Logger
	objects   *prometheus.CounterVec // by kind
	OnRestore func(names []string)   // called with the objects that a pass restores; nil: not called
	all       records.Drift
}

// NewDrift returns a Drift that has counted none.
func NewDrift(log *slog.Logger, m *Metrics) *Drift { return &Drift{log: log, objects: m.drift} }

// Record returns the drift for the helper's report.
func (d *Drift) Record() records.Drift { return d.all }

// Add counts objects that one pass restores.
func (d *Drift) Add(objects ...Drifted) {
	if len(objects) == 0 {
		return
	}
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = o.name
		d.objects.WithLabelValues(o.kind).Inc()
	}
	d.log.Warn("drift detected, restoring", "objects", names)
	if d.OnRestore != nil {
		d.OnRestore(names)
	}
	d.all = d.all.Add(publish.Now(), names)
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
