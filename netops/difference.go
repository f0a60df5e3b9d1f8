package netops

import (
	"bytes"
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// object is a kind of which a state has several objects. Compare orders objects by their identity in the kernel;
// matches reports whether an observed object equals the desired one.
type object[T any] interface {
	Compare(T) int
	matches(want T) bool
}

// delta is the difference of two lists of objects, sorted. change has the desired form of objects that exist in another
// form.
type delta[T any] struct {
	add, change, remove []T
}

// difference merges two lists by identity.
func difference[T object[T]](have, want []T) delta[T] {
	have, want = InOrder(have), InOrder(want)
	var d delta[T]
	for len(have) > 0 || len(want) > 0 {
		switch {
		case len(want) == 0 || len(have) > 0 && have[0].Compare(want[0]) < 0:
			d.remove = append(d.remove, have[0])
			have = have[1:]
		case len(have) == 0 || have[0].Compare(want[0]) > 0:
			d.add = append(d.add, want[0])
			want = want[1:]
		default:
			if !have[0].matches(want[0]) {
				d.change = append(d.change, want[0])
			}
			have, want = have[1:], want[1:]
		}
	}
	return d
}

// InOrder returns the objects sorted and without duplicates.
func InOrder[T object[T]](objects []T) []T {
	if slices.IsSortedFunc(objects, func(b, a T) int { return cmp.Or(b.Compare(a), -1) }) { // strictly ascending
		return objects
	}
	sorted := slices.Clone(objects)
	slices.SortStableFunc(sorted, T.Compare)
	return slices.CompactFunc(sorted, func(a, b T) bool { return a.Compare(b) == 0 })
}

// Compare orders objects by what identifies them.
func (l Link) Compare(o Link) int { return strings.Compare(l.Name, o.Name) }

func (l Link) matches(want Link) bool {
	return l.sameFixed(want) && l.Remote == want.Remote && !l.Down && (!l.LinkLocal || !l.Ours()) &&
		(!l.ARP || want.Kind == KindDevice) && (want.MTU == 0 || l.MTU == want.MTU) && (want.Group == 0 || l.Group == want.Group) &&
		l.hasSettings(want)
}

// hasSettings reports whether the desired IPv4 settings are enabled.
func (l Link) hasSettings(want Link) bool {
	return (!want.Forwarding || l.Forwarding) && (!want.MarkedPath || l.MarkedPath) && (!want.LoosePath || l.LoosePath)
}

// sameFixed reports whether the attributes that cannot be changed on an existing link are as desired.
func (l Link) sameFixed(want Link) bool {
	return want.Kind == KindDevice || l.Kind == want.Kind && l.Port == want.Port && l.VNI == want.VNI &&
		(want.MAC == nil || bytes.Equal(l.MAC, want.MAC))
}

// excludes reports whether an overlay cannot be added while this one exists: of two at the same port, either one is in
// collect-metadata mode, or both have the same VNI (vxlan_vni_in_use in drivers/net/vxlan/vxlan_core.c,
// geneve_configure in drivers/net/geneve.c).
func (l Link) excludes(o Link) bool {
	return l.Kind == o.Kind && l.Port == o.Port && (l.VNI == 0 || o.VNI == 0 || l.VNI == o.VNI)
}

// Ours reports whether the link's name has our prefix.
func (l Link) Ours() bool { return strings.HasPrefix(l.Name, Prefix) }

// Compare orders objects by what identifies them.
func (a Address) Compare(o Address) int {
	return cmp.Or(strings.Compare(a.Link, o.Link), a.Prefix.Compare(o.Prefix))
}

func (a Address) matches(Address) bool { return true }

// Compare orders objects by what identifies them.
func (n Neighbour) Compare(o Neighbour) int {
	return cmp.Or(strings.Compare(n.Link, o.Link), n.IP.Compare(o.IP))
}

func (n Neighbour) matches(want Neighbour) bool { return bytes.Equal(n.MAC, want.MAC) }

// Compare orders objects by what identifies them.
func (n Nexthop) Compare(o Nexthop) int     { return cmp.Compare(n.ID, o.ID) }
func (n Nexthop) matches(want Nexthop) bool { return n == want }

// Compare orders objects by what identifies them.
func (g NexthopGroup) Compare(o NexthopGroup) int { return cmp.Compare(g.ID, o.ID) }

func (g NexthopGroup) matches(want NexthopGroup) bool {
	return slices.Equal(g.Members, want.Members) && !g.Uneven
}

// Compare orders objects by what identifies them.
func (r Route) Compare(o Route) int {
	return cmp.Or(cmp.Compare(r.Table, o.Table), r.Dst.Compare(o.Dst), cmp.Compare(r.Metric, o.Metric))
}

func (r Route) matches(want Route) bool { return r == want }

// Compare orders rules of one priority from specific to general: the kernel evaluates them in the order in which they
// were added, and deletes the first rule with the given selectors.
func (r Rule) Compare(o Rule) int {
	return cmp.Or(cmp.Compare(r.Priority, o.Priority), cmp.Compare(o.selectors(), r.selectors()),
		r.From.Compare(o.From), r.To.Compare(o.To), strings.Compare(r.IIf, o.IIf),
		cmp.Compare(r.Mark, o.Mark), cmp.Compare(r.Table, o.Table))
}

// selectors counts the conditions of the rule.
func (r Rule) selectors() int {
	n := 0
	for _, set := range []bool{r.From.IsValid(), r.To.IsValid(), r.IIf != "", r.Mark != 0} {
		if set {
			n++
		}
	}
	return n
}

func (r Rule) matches(Rule) bool { return true }

// linkDelta is the difference of the links. recreate has links, as observed, that must be deleted before others are
// added, expel the foreign links that are in one of our groups.
type linkDelta struct {
	add, change, recreate, remove []Link
	expel                         []ForeignMember
}

// compareLinks separates links that can be changed from those that must be recreated. Foreign devices that are not
// desired are left unchanged.
func compareLinks(have, want []Link) linkDelta {
	d := difference(have, want)
	changed := linkDelta{expel: foreignMembers(have, want)}
	for _, l := range d.remove {
		switch {
		case l.Kind == KindDevice:
		case slices.ContainsFunc(d.add, l.excludes):
			changed.recreate = append(changed.recreate, l)
		default:
			changed.remove = append(changed.remove, l)
		}
	}
	for _, l := range d.add {
		if l.Kind == KindDevice {
			changed.change = append(changed.change, l)
		} else {
			changed.add = append(changed.add, l)
		}
	}
	for _, l := range d.change {
		old := have[slices.IndexFunc(have, func(h Link) bool { return h.Name == l.Name })]
		if old.sameFixed(l) {
			changed.change = append(changed.change, l)
			continue
		}
		changed.recreate = append(changed.recreate, old)
		changed.add = append(changed.add, l)
	}
	return changed
}

// foreignMembers returns the links in our groups that are not desired there, without links that are deleted.
func foreignMembers(have, want []Link) []ForeignMember {
	var found []ForeignMember
	for _, h := range InOrder(have) {
		i := slices.IndexFunc(want, func(w Link) bool { return w.Name == h.Name })
		belongs, goes := i >= 0 && want[i].Group != 0, i < 0 && h.Kind != KindDevice
		if IsOurGroup(h.Group) && !belongs && !goes {
			found = append(found, ForeignMember{Link: h.Name, Group: h.Group})
		}
	}
	return found
}

// IsOurGroup reports whether a group of links is one of liqonet's.
func IsOurGroup(group uint32) bool { return group == GroupOverlay || group == GroupTunnel }

// canonical returns the state in the form in which the kernel reports it: prefixes without host bits, no prefix for
// "any", all rules listed.
func canonical(s State) State {
	s.Routes = slices.Clone(s.Routes)
	for i := range s.Routes {
		s.Routes[i].Dst = s.Routes[i].Dst.Masked()
	}
	s.Routes = InOrder(s.Routes) // there can be one for each pod, and they are compared twice
	s.Rules = slices.Clone(s.Rules)
	if s.LocalRuleMoved {
		s.Rules = append(s.Rules, MovedLocalRule)
	}
	for i := range s.Rules {
		s.Rules[i].From, s.Rules[i].To = selector(s.Rules[i].From), selector(s.Rules[i].To)
	}
	return s
}

// MovedLocalRule is the rule for the local table after it was moved.
var MovedLocalRule = Rule{Priority: LocalPriority, Table: LocalTable}

// selector returns a rule's prefix in the form in which the kernel reports it: invalid for all addresses.
func selector(p netip.Prefix) netip.Prefix {
	if p.Bits() <= 0 {
		return netip.Prefix{}
	}
	return p.Masked()
}
