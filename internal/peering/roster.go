package peering

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/kube/discover"
)

// roster tracks the nodes of a cluster that an operation needs: nodes are added and removed while it runs, and a node
// whose helper cannot start must not prevent the verification of the others.
type roster struct {
	strict bool // every node is required (--all-nodes)

	mu    sync.Mutex
	nodes map[string]bool   // whether a node is Ready, by its name
	stuck map[string]string // why a node's helper cannot start, by node name
	until time.Time         // from then on some nodes are sufficient; zero: never
}

// set replaces the nodes.
func (r *roster) set(nodes []discover.Node) {
	all := make(map[string]bool)
	for _, n := range nodes {
		all[n.Name] = n.Ready
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nodes = all
}

// watch updates the nodes until ctx ends. If the user may not watch nodes, the discovered ones remain.
func (r *roster) watch(ctx context.Context, c *kube.Cluster) {
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

// recordProblems records helpers that cannot start; see kube.Cluster.FailWhen. If no node can be verified, it returns
// an error.
func (r *roster) recordProblems(problems []*kube.PodError) *kube.PodError {
	first := r.setStuck(problems)
	if first != nil && (r.strict || len(r.expected()) == 0) {
		return first
	}
	return nil
}

// setStuck replaces the list of nodes whose helpers cannot start, and returns the first reason.
func (r *roster) setStuck(problems []*kube.PodError) (first *kube.PodError) {
	stuck := make(map[string]string)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range problems {
		if p.Lasts || r.stuck[p.Node] != "" { // a problem from an earlier step lasts as well
			first, stuck[p.Node] = cmp.Or(first, p), p.Error()
		}
	}
	r.stuck = stuck
	return first
}

// limitWait has the roster require all nodes during a part of the remaining time, and then only some. The rest of the
// time is for the gateways' reports. stop ends the limit, at the end of a step.
func (r *roster) limitWait(ctx context.Context, part float64) (stop func()) {
	deadline, bounded := ctx.Deadline()
	if !bounded || r.strict {
		return func() {}
	}
	rest := time.Until(deadline)
	left := min(time.Duration(float64(rest)*part), max(rest-reportTime, rest/2))
	until := func(t time.Time) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.until = t
	}
	until(time.Now().Add(left))
	return func() { until(time.Time{}) }
}

// names returns the names, sorted, of the nodes that are Ready, or of those that are not.
func (r *roster) names(ready bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.nodes)), func(name string) bool { return r.nodes[name] != ready })
}

// allReady and notReady return the names of the Ready nodes, and of the others.
func (r *roster) allReady() []string { return r.names(true) }
func (r *roster) notReady() []string { return r.names(false) }

// expected returns the names of the Ready nodes whose helpers can start.
func (r *roster) expected() []string {
	return slices.DeleteFunc(r.allReady(), func(name string) bool { return !r.strict && r.problemOf(name) != "" })
}

// problemOf returns why the helper of a node cannot start; "": no reason is known.
func (r *roster) problemOf(node string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stuck[node]
}

// required returns the names of the nodes that a step must wait for now: the expected ones. If it is late, these are
// only those that are done, if there are any.
func (r *roster) required(done func(name string) bool) []string {
	names := r.expected()
	if r.isLate() && slices.ContainsFunc(names, done) {
		return slices.DeleteFunc(names, func(name string) bool { return !done(name) })
	}
	return names
}

// isLate reports whether the time in which all nodes are required is over.
func (r *roster) isLate() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.until.IsZero() && !time.Now().Before(r.until)
}
