//go:build linux

package helper

import (
	"log/slog"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
)

// drift counts external changes of liqonet's kernel objects, which this helper restores. Its methods may be called from
// any goroutine.
type drift struct {
	log       *slog.Logger
	objects   *prometheus.CounterVec // by kind
	onRestore func(names []string)   // called with the objects that a pass restores; nil: not called

	mu  sync.Mutex
	all records.Drift
}

func newDrift(log *slog.Logger, m *metrics) *drift { return &drift{log: log, objects: m.drift} }

// record returns the drift for the helper's report.
func (d *drift) record() records.Drift {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all
}

// add counts objects that one pass restores.
func (d *drift) add(objects ...driftObject) {
	if len(objects) == 0 {
		return
	}
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = o.name
		d.objects.WithLabelValues(o.kind).Inc()
	}
	d.log.Warn("drift detected, restoring", "objects", names)
	if d.onRestore != nil {
		d.onRestore(names)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = d.all.Add(now(), names)
}

// driftObject is an object with an external change.
type driftObject struct{ kind, name string }

// tunnelObject returns the object of a tunnel's link, keys and peer, which are not part of a plan.
func tunnelObject(link string) driftObject { return driftObject{"tunnel", "tunnel " + link} }

// drifted returns the objects in which the kernel differs from the state that the last pass reached. Changes due to new
// records are not included: that state was computed from the earlier records.
func drifted(have, reached netops.State) []driftObject {
	var objects []driftObject
	for _, s := range netops.Diff(have, reached.Reachable(have)).Steps {
		objects = append(objects, driftObject{kind: s.Kind(), name: nameOf(s)})
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
