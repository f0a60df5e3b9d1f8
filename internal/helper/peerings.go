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
	name   string
	record *records.Peering // as it can be taken now; nil: not at all
	last   *records.Peering // as it was taken last; nil: never
}

// choices are what may be taken of a candidate, the best first.
func (c candidate) choices() []*records.Peering {
	return slices.DeleteFunc([]*records.Peering{c.record, c.last}, func(p *records.Peering) bool { return p == nil })
}

// rank orders candidates that want the same: one that goes on as it is keeps what it has.
func (c candidate) rank() int {
	switch {
	case c.last == nil:
		return 2
	case c.record == nil || reflect.DeepEqual(c.record, c.last):
		return 0
	}
	return 1
}

// readPeerings puts into the view the peerings that are served: each by its record, or by the last one that could be
// taken. Those that can be read and are not served are returned.
func (m *memory) readPeerings(all []*corev1.ConfigMap, own protected, v *nodeView) (unserved []records.Peering, faults []fault) {
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
		if v.fabric != nil && len(c.choices()) > 0 {
			candidates = append(candidates, c)
		} else if readable != nil {
			unserved = append(unserved, *readable)
		}
	}
	maps.DeleteFunc(m.peerings, func(name string, _ records.Peering) bool { return !there[name] })
	slices.SortFunc(candidates, func(a, b candidate) int { return cmp.Or(a.rank()-b.rank(), strings.Compare(a.name, b.name)) })
	v.taken = newApart()
	for _, c := range candidates {
		p, err := take(v.taken, c)
		if err != nil {
			refuse(c.name, fmt.Errorf("peering %q: %w", c.name, err))
		}
		if p == nil {
			unserved = append(unserved, *c.choices()[0])
			continue
		}
		m.peerings[c.name] = *p
		v.peerings = append(v.peerings, *p)
	}
	slices.SortFunc(v.peerings, func(a, b records.Peering) int { return strings.Compare(a.Name, b.Name) })
	return unserved, faults
}

// candidate reads a record and checks it, and what was taken last, against what is the cluster's own. readable is what
// the record says, also where that cannot be taken.
func (m *memory) candidate(name string, cm *corev1.ConfigMap, own protected, fabric *records.Fabric) (c candidate, readable *records.Peering, err error) {
	c.name = name
	fits := func(p records.Peering) error {
		if fabric == nil {
			return nil
		}
		if err := own.checkPeering(p, *fabric); err != nil {
			return fmt.Errorf("peering %q: %w", name, err)
		}
		return nil
	}
	if last, known := m.peerings[name]; known && fits(last) == nil {
		c.last = &last
	}
	p, err := recordOf[records.Peering](cm)
	if err != nil {
		return c, c.last, err
	}
	if err := fits(p); err != nil {
		return c, &p, err
	}
	c.record = &p
	return c, &p, nil
}

// take takes the best choice of a candidate that leaves others what they have; nil where none does.
func take(taken *apart, c candidate) (*records.Peering, error) {
	var first error
	for _, p := range c.choices() {
		err := taken.take(*p)
		if err == nil {
			return p, first
		}
		first = cmp.Or(first, err)
	}
	return nil, first
}

// hold puts into the view the ranges of peers that are guarded and no more: those reserved for a peering that is not
// served, whatever became of its record, and those of records that are refused.
func (m *memory) hold(v *nodeView, unserved []records.Peering, own protected) (faults []fault) {
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
