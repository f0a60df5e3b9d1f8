//go:build linux

package helper

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
)

// candidate is a peering that may be served.
type candidate struct {
	name    string
	choices []records.Peering // acceptable records: the current one, and the last valid one
	// rank orders candidates with conflicts: an unchanged peering has precedence.
	rank int
}

// readPeerings adds the served peerings to the view: each with its record, or the last valid one. It returns the
// readable peerings that are not served.
func (m *lastValid) readPeerings(all []*corev1.ConfigMap, own protected, v *nodeView) (unserved []records.Peering, faults []fault) {
	refuse := func(name string, err error) {
		faults = append(faults, fault{records.PeeringName(name), name, err})
	}
	var candidates []candidate
	there := make(map[string]bool)
	for _, cm := range all {
		id, ok := records.IdentityOf(cm.Name)
		if !ok || id.Component != records.ComponentPeering {
			continue
		}
		there[id.Peering] = true
		c, readable, err := m.candidate(id.Peering, cm, own, v.fabric)
		if err != nil {
			refuse(id.Peering, err)
		}
		if v.fabric != nil && len(c.choices) > 0 {
			candidates = append(candidates, c)
		} else {
			unserved = append(unserved, readable...)
		}
	}
	maps.DeleteFunc(m.peerings, func(name string, _ records.Peering) bool { return !there[name] })
	slices.SortFunc(candidates, func(a, b candidate) int { return cmp.Or(a.rank-b.rank, strings.Compare(a.name, b.name)) })
	v.conflicts = newConflicts()
	for _, c := range candidates {
		p, err := chooseValid(v.conflicts, c)
		if err != nil {
			refuse(c.name, fmt.Errorf("peering %q: %w", c.name, err))
		}
		if p == nil {
			unserved = append(unserved, c.choices[0])
			continue
		}
		m.peerings[c.name] = *p
		v.peerings = append(v.peerings, *p)
	}
	slices.SortFunc(v.peerings, func(a, b records.Peering) int { return strings.Compare(a.Name, b.Name) })
	return unserved, faults
}

// candidate reads a record and checks it, and the last valid one, for conflicts with the cluster's own addresses.
// readable is the record, even if it is not acceptable; if it is unreadable, the last valid one.
func (m *lastValid) candidate(name string, cm *corev1.ConfigMap, own protected, fabric *records.Fabric) (c candidate, readable []records.Peering, err error) {
	fits := func(p records.Peering) error {
		if fabric == nil {
			return nil
		}
		if err := own.checkPeering(p, *fabric); err != nil {
			return fmt.Errorf("peering %q: %w", name, err)
		}
		return nil
	}
	var before []records.Peering
	if last, known := m.peerings[name]; known && fits(last) == nil {
		before = append(before, last)
	}
	p, err := recordOf[records.Peering](cm)
	if err != nil {
		return candidate{name: name, choices: before}, before, err
	}
	readable = append(readable, p)
	err = fits(p)
	switch {
	case err != nil:
		return candidate{name: name, choices: before}, readable, err
	case len(before) == 0:
		return candidate{name, readable, 2}, readable, nil
	case reflect.DeepEqual(p, before[0]):
		return candidate{name, readable, 0}, readable, nil
	}
	return candidate{name, []records.Peering{p, before[0]}, 1}, readable, nil
}

// choose claims the best choice of a candidate without a conflict; nil if there is none.
func chooseValid(taken *conflicts, c candidate) (*records.Peering, error) {
	var first error
	for i := range c.choices {
		err := taken.claim(c.choices[i])
		if err == nil {
			return &c.choices[i], first
		}
		first = cmp.Or(first, err)
	}
	return nil, first
}

// hold adds the ranges of peers that are only guarded to the view: those reserved for a peering that is not served,
// whatever its record, and those of rejected records.
func (m *lastValid) hold(v *nodeView, unserved []records.Peering, own protected) (faults []fault) {
	var served []netip.Prefix
	servedNames := make(map[string]bool)
	for _, p := range v.peerings {
		served, servedNames[p.Name] = append(served, p.Seen()...), true
	}
	if v.fabric != nil {
		own = own.withFabric(*v.fabric)
	}
	wanted := make(map[string][]netip.Prefix)
	for name, reserved := range m.reserved.ranges {
		wanted[name] = slices.Clone(reserved)
	}
	for _, p := range unserved {
		wanted[p.Name] = append(wanted[p.Name], p.Seen()...)
	}
	within := coverOf(served)
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		held, conflicts := own.free(slices.DeleteFunc(wanted[name], within))
		if len(conflicts) > 0 {
			faults = append(faults, fault{records.IPAMName, name, fmt.Errorf("hold back peering %q: %w", name, errors.Join(conflicts...))})
		}
		v.heldBack = append(v.heldBack, held...)
		if len(held) > 0 && !servedNames[name] {
			v.guarded = append(v.guarded, name)
		}
	}
	slices.SortFunc(v.heldBack, netip.Prefix.Compare)
	v.heldBack = slices.Compact(v.heldBack)
	return faults
}

// coverOf returns a function that reports whether a range lies within one of the ranges.
func coverOf(ranges []netip.Prefix) func(netip.Prefix) bool {
	sorted := cidr.Outermost(ranges)
	return func(p netip.Prefix) bool {
		i, found := slices.BinarySearchFunc(sorted, p, netip.Prefix.Compare)
		return found || i > 0 && cidr.Covers(sorted[i-1], p)
	}
}
