package netops

import (
	"bytes"
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// object is a kind of which a state has many. compare orders objects by what identifies them in the kernel;
// matches reports whether an observed object is as wanted.
type object[T any] interface {
	compare(T) int
	matches(want T) bool
}

// delta is what differs between two lists of objects, sorted. change has the wanted shape of objects that exist
// in another.
type delta[T any] struct {
	add, change, remove []T
}

// difference merges two lists by identity.
func difference[T object[T]](have, want []T) delta[T] {
	have, want = inOrder(have), inOrder(want)
	var d delta[T]
	for len(have) > 0 || len(want) > 0 {
		switch {
		case len(want) == 0 || len(have) > 0 && have[0].compare(want[0]) < 0:
			d.remove = append(d.remove, have[0])
			have = have[1:]
		case len(have) == 0 || have[0].compare(want[0]) > 0:
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

// inOrder returns the objects sorted, each once.
func inOrder[T object[T]](objects []T) []T {
	if slices.IsSortedFunc(objects, func(b, a T) int { return cmp.Or(b.compare(a), -1) }) { // none twice
		return objects
	}
	sorted := slices.Clone(objects)
	slices.SortStableFunc(sorted, T.compare)
	return slices.CompactFunc(sorted, func(a, b T) bool { return a.compare(b) == 0 })
}

func (l Link) compare(o Link) int { return strings.Compare(l.Name, o.Name) }

func (l Link) matches(want Link) bool {
	return l.sameMake(want) && l.Remote == want.Remote && !l.Down && (!l.LinkLocal || !l.ours()) &&
		(!l.ARP || want.Kind == KindDevice) && (want.MTU == 0 || l.MTU == want.MTU) && (want.Group == 0 || l.Group == want.Group) &&
		l.hasSettings(want)
}

// hasSettings reports whether the wanted settings of IPv4 are on.
func (l Link) hasSettings(want Link) bool {
	return (!want.Forwarding || l.Forwarding) && (!want.MarkedPath || l.MarkedPath) && (!want.LoosePath || l.LoosePath)
}

// sameMake reports whether what cannot be changed on an existing link is as wanted.
func (l Link) sameMake(want Link) bool {
	return want.Kind == KindDevice || l.Kind == want.Kind && l.Port == want.Port && l.VNI == want.VNI &&
		(want.MAC == nil || bytes.Equal(l.MAC, want.MAC))
}

// keepsOut reports whether an overlay cannot be added while this one is there: of those at one port either one is in
// collect-metadata mode, or each has a network of its own (vxlan_vni_in_use in drivers/net/vxlan/vxlan_core.c,
// geneve_configure in drivers/net/geneve.c).
func (l Link) keepsOut(o Link) bool {
	return l.Kind == o.Kind && l.Port == o.Port && (l.VNI == 0 || o.VNI == 0 || l.VNI == o.VNI)
}

// ours reports whether the link's name is one of ours.
func (l Link) ours() bool { return strings.HasPrefix(l.Name, Prefix) }

func (a Address) compare(o Address) int {
	return cmp.Or(strings.Compare(a.Link, o.Link), a.Prefix.Compare(o.Prefix))
}

func (a Address) matches(Address) bool { return true }

func (n Neighbour) compare(o Neighbour) int {
	return cmp.Or(strings.Compare(n.Link, o.Link), n.IP.Compare(o.IP))
}

func (n Neighbour) matches(want Neighbour) bool { return bytes.Equal(n.MAC, want.MAC) }

func (n Nexthop) compare(o Nexthop) int     { return cmp.Compare(n.ID, o.ID) }
func (n Nexthop) matches(want Nexthop) bool { return n == want }

func (g NexthopGroup) compare(o NexthopGroup) int { return cmp.Compare(g.ID, o.ID) }

func (g NexthopGroup) matches(want NexthopGroup) bool {
	return slices.Equal(g.Members, want.Members) && !g.Uneven
}

func (r Route) compare(o Route) int {
	return cmp.Or(cmp.Compare(r.Table, o.Table), r.Dst.Compare(o.Dst), cmp.Compare(r.Metric, o.Metric))
}

func (r Route) matches(want Route) bool { return r == want }

// compare puts rules of one priority in the order from particular to general: the kernel asks them in the order
// in which they were added, and deletes the first that has the selectors named.
func (r Rule) compare(o Rule) int {
	return cmp.Or(cmp.Compare(r.Priority, o.Priority), cmp.Compare(o.selectors(), r.selectors()),
		r.From.Compare(o.From), r.To.Compare(o.To), strings.Compare(r.IIf, o.IIf),
		cmp.Compare(r.Mark, o.Mark), cmp.Compare(r.Table, o.Table))
}

// selectors counts what a packet must have for the rule to apply.
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

// linkDelta is what differs between the links. remake has links, as they are, that must be deleted before others are
// added, expel those that are in a group of ours and should be in none.
type linkDelta struct {
	add, change, remake, remove []Link
	expel                       []Membership
}

// compareLinks tells links that can be changed from those that must be made again, and leaves alone the devices
// that nobody wants configured.
func compareLinks(have, want []Link) linkDelta {
	d := difference(have, want)
	changed := linkDelta{expel: strangers(have, want)}
	for _, l := range d.remove {
		switch {
		case l.Kind == KindDevice:
		case slices.ContainsFunc(d.add, l.keepsOut):
			changed.remake = append(changed.remake, l)
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
		if old.sameMake(l) {
			changed.change = append(changed.change, l)
			continue
		}
		changed.remake = append(changed.remake, old)
		changed.add = append(changed.add, l)
	}
	return changed
}

// strangers are the links in groups of ours that are not wanted there. Those that go altogether are none.
func strangers(have, want []Link) []Membership {
	var found []Membership
	for _, h := range inOrder(have) {
		i := slices.IndexFunc(want, func(w Link) bool { return w.Name == h.Name })
		belongs, goes := i >= 0 && want[i].Group != 0, i < 0 && h.Kind != KindDevice
		if isOurGroup(h.Group) && !belongs && !goes {
			found = append(found, Membership{Link: h.Name, Group: h.Group})
		}
	}
	return found
}

func isOurGroup(group uint32) bool { return group == GroupOverlay || group == GroupTunnel }

// canonical is the state as the kernel would tell it: prefixes without host bits, "any" without a prefix, every
// rule by name.
func canonical(s State) State {
	s.Routes = slices.Clone(s.Routes)
	for i := range s.Routes {
		s.Routes[i].Dst = s.Routes[i].Dst.Masked()
	}
	s.Routes = inOrder(s.Routes) // there can be one for each pod, and they are compared twice
	s.Rules = slices.Clone(s.Rules)
	if s.LocalRuleMoved {
		s.Rules = append(s.Rules, movedLocalRule)
	}
	for i := range s.Rules {
		s.Rules[i].From, s.Rules[i].To = selector(s.Rules[i].From), selector(s.Rules[i].To)
	}
	return s
}

// movedLocalRule is where the kernel's rule for the local table is moved to.
var movedLocalRule = Rule{Priority: LocalPriority, Table: localTable}

// selector is a rule's prefix as the kernel tells it; that of all addresses is none.
func selector(p netip.Prefix) netip.Prefix {
	if p.Bits() <= 0 {
		return netip.Prefix{}
	}
	return p.Masked()
}
