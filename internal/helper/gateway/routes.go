//go:build linux

package gateway

import (
	"maps"
	"reflect"
	"slices"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
)

// serveNodes is a pass for a view that differs from the previous one only in pods of nodes. It changes their routes and
// reads nothing else: a cluster with pods of a pool has a route for each, and reading fifty thousand takes a fifth of a
// second. All other differences, in the records or in the kernel, need a complete pass; done is false then.
func (l *loop) serveNodes(v view) (done bool, err error) {
	if l.passed == nil || !l.Undisturbed() {
		return false, nil
	}
	plan, ok := l.passed.routesTo(v)
	if !ok {
		return false, nil
	}
	if !plan.Empty() {
		l.Log.Debug("pods of nodes changed", "routes", len(plan.Steps))
	}
	if err := l.Advance(plan, v.state); err != nil {
		return false, err
	}
	l.passed = &v
	if changed, err := l.bringTunnels(v); changed || err != nil {
		return false, nil //nolint:nilerr // the complete pass that follows returns it
	}
	if err := l.echoes.apply(v); err != nil {
		return false, err
	}
	l.setServed(&v)
	return true, nil
}

// routesTo returns the difference between the states of two views, if it consists of routes to pods.
func (v view) routesTo(next view) (plan netops.Plan, ok bool) {
	if !v.sameButNodes(next) {
		return plan, false
	}
	gone, come := v.without(next), next.without(v)
	if next.shares(gone, come) {
		return plan, false
	}
	// The common part of both states cancels out.
	plan = netops.Diff(v.wantedOf(gone).State(), next.wantedOf(come).State())
	return plan, !slices.ContainsFunc(plan.Steps, func(s netops.Step) bool { _, is := s.Object.(netops.Route); return !is })
}

// sameButNodes reports whether two views differ only in the reports of nodes.
func (v view) sameButNodes(o view) bool {
	return v.id == o.id && v.pod == o.pod && v.over == o.over && maps.Equal(v.unused, o.unused) && maps.Equal(v.carried, o.carried) && maps.Equal(v.renewed, o.renewed) &&
		reflect.DeepEqual(v.fabric, o.fabric) && reflect.DeepEqual(v.peering, o.peering)
}

// without returns the reports in v that are not in o, or were rewritten: if two claim one pod, the latest counts.
func (v view) without(o view) (only []records.Node) {
	others := o.nodes // both are in order
	for _, n := range v.nodes {
		for len(others) > 0 && others[0].compare(n) < 0 {
			others = others[1:]
		}
		if len(others) == 0 || others[0] != n {
			only = append(only, *n.Node)
		}
	}
	return only
}

// shares reports whether a range in the changed reports is also another node's: its owner then depends on all reports.
func (v view) shares(gone, come []records.Node) bool {
	before, after := claimed(gone), claimed(come)
	for _, changed := range []claimants{before, after} {
		for p, nodes := range changed {
			if nodes > 1 || v.claims[p] > after[p] {
				return true
			}
		}
	}
	return false
}

// claimed counts the reports of each range of pods.
func claimed(nodes []records.Node) claimants {
	all := claimants{}
	for _, n := range nodes {
		all.add(&n, 1)
	}
	return all
}
