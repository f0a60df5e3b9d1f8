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

// drift counts changes by others of liqonet's kernel objects, which this helper restores. Its methods may be called
// from any goroutine.
type drift struct {
	log     *slog.Logger
	objects *prometheus.CounterVec // by kind
	told    func(names []string)   // what one pass restores; nil: nobody is

	mu  sync.Mutex
	all records.Drift
}

func newDrift(log *slog.Logger, m *metrics) *drift { return &drift{log: log, objects: m.drift} }

// record returns what a helper reports of it.
func (d *drift) record() records.Drift {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all
}

// note counts objects that one pass restores.
func (d *drift) note(objects ...driftObject) {
	if len(objects) == 0 {
		return
	}
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = o.name
		d.objects.WithLabelValues(o.kind).Inc()
	}
	d.log.Warn("drift detected, restoring", "objects", names)
	if d.told != nil {
		d.told(names)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = d.all.Noted(now(), names)
}

// driftObject is an object that others changed.
type driftObject struct{ kind, name string }

// tunnelObject stands for a tunnel's link, keys and peer, which are no part of a plan.
func tunnelObject(link string) driftObject { return driftObject{"tunnel", "tunnel " + link} }

// drifted returns the objects in which the kernel differs from the state that the last pass reached. What new records
// change is no part of it: that state followed from the records before.
func drifted(have, reached netops.State) []driftObject {
	var objects []driftObject
	for _, s := range netops.Diff(have, reached.Reachable(have)).Steps {
		objects = append(objects, driftObject{kind: s.Kind(), name: nameOf(s)})
	}
	return objects
}

// nameOf is a step's object in one line: of a firewall, the first command of its transaction.
func nameOf(s netops.Step) string {
	name, commands, several := strings.Cut(s.Object.String(), "\n")
	if several {
		name, _, _ = strings.Cut(strings.TrimSpace(commands), "\n")
	}
	return name
}
