package peering

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/kube/discover"
)

// roster follows which nodes of a cluster have to take part in an operation: nodes join and leave while it runs, and a
// node whose helper cannot start must not keep the others from being connected.
type roster struct {
	strict bool // no node may be missing (--all-nodes)

	mu     sync.Mutex
	ready  []string          // names of the nodes that are Ready, sorted
	silent []string          // of those that are not
	stuck  map[string]string // why the helper of a node cannot start, by the node's name
	until  time.Time         // when some nodes are enough; zero: never
}

// set replaces the lists.
func (r *roster) set(nodes []discover.Node) {
	var ready, silent []string
	for _, n := range nodes {
		if n.Ready {
			ready = append(ready, n.Name)
		} else {
			silent = append(silent, n.Name)
		}
	}
	slices.Sort(ready)
	slices.Sort(silent)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready, r.silent = ready, silent
}

// follow keeps the lists up to date until ctx ends. Where the user may not watch nodes they stay as they were
// discovered.
func (r *roster) follow(ctx context.Context, c *kube.Cluster) {
	for all, err := range kube.Watch[*corev1.Node](ctx, c, kube.Selection{}) {
		if err != nil {
			continue
		}
		var nodes []discover.Node
		for _, n := range all {
			if discover.RunsHelpers(n) {
				nodes = append(nodes, discover.Node{Name: n.Name, Ready: kube.Ready(n)})
			}
		}
		r.set(nodes)
	}
}

// judge takes note of helpers that cannot start; see cluster.FailWhen. Where none of the nodes can take part it is an
// error.
func (r *roster) judge(problems []*kube.PodError) *kube.PodError {
	first := r.noteStuck(problems)
	if first != nil && (r.strict || len(r.awaited()) == 0) {
		return first
	}
	return nil
}

// noteStuck replaces the list of nodes whose helpers cannot start, and returns the first reason.
func (r *roster) noteStuck(problems []*kube.PodError) (first *kube.PodError) {
	stuck := make(map[string]string)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range problems {
		if p.Lasts || r.stuck[p.Node] != "" { // what an earlier step has seen lasts, too
			first, stuck[p.Node] = cmp.Or(first, p), p.Error()
		}
	}
	r.stuck = stuck
	return first
}

// patience has the roster wait for all nodes during a part of the time that is left, and then be content with some.
// Gateways need time to report afterwards. The end of a step calls stop.
func (r *roster) patience(ctx context.Context, part float64) (stop func()) {
	deadline, bounded := ctx.Deadline()
	if !bounded || r.strict {
		return func() {}
	}
	rest := time.Until(deadline)
	left := min(time.Duration(float64(rest)*part), max(rest-looksTime, rest/2))
	until := func(t time.Time) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.until = t
	}
	until(time.Now().Add(left))
	return func() { until(time.Time{}) }
}

// all are the names of the Ready nodes.
func (r *roster) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ready)
}

// notReady are the names of the nodes that are not Ready.
func (r *roster) notReady() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.silent)
}

// awaited are the names of the Ready nodes whose helpers can start.
func (r *roster) awaited() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.ready), func(name string) bool { return !r.strict && r.stuck[name] != "" })
}

// problem is why the helper of a node cannot start; "": no reason is known.
func (r *roster) problem(node string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stuck[node]
}

// demanded are the names of the nodes that a step has to wait for now: those that are awaited and, when it is late, of
// these only the ones that are done, if there are any.
func (r *roster) demanded(done func(name string) bool) []string {
	names := r.awaited()
	if r.isLate() && slices.ContainsFunc(names, done) {
		return slices.DeleteFunc(names, func(name string) bool { return !done(name) })
	}
	return names
}

// isLate reports whether the time to wait for all nodes is over.
func (r *roster) isLate() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.until.IsZero() && !time.Now().Before(r.until)
}
