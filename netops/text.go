package netops

import (
	"fmt"
	"strings"
)

// line collects the words of an object's description.
type line []string

// add appends a word and its value.
func (l *line) add(word string, value any) { *l = append(*l, fmt.Sprintf("%s %v", word, value)) }

// addIf appends them only if they say something.
func (l *line) addIf(said bool, word string, value any) {
	if said {
		l.add(word, value)
	}
}

func (l *line) String() string { return strings.Join(*l, " ") }

// String is the link as plans and errors show it.
func (l Link) String() string {
	var t line
	t.add("link", l.Name)
	if l.Kind != KindDevice {
		t = append(t, string(l.Kind))
	}
	t.addIf(l.Port != 0, "port", l.Port)
	t.addIf(l.VNI != 0, "id", l.VNI)
	t.addIf(l.Remote.IsValid(), "remote", l.Remote)
	t.addIf(l.MAC != nil, "mac", l.MAC)
	t.addIf(l.MTU != 0, "mtu", l.MTU)
	t.addIf(l.Group != 0, "group", l.Group)
	if l.Forwarding {
		t = append(t, "forwarding")
	}
	if l.MarkedPath {
		t = append(t, "marked-path")
	}
	return t.String()
}

// String is the membership as plans and errors show it.
func (m Membership) String() string { return fmt.Sprintf("group %d dev %s", m.Group, m.Link) }

// String is the address as plans and errors show it.
func (a Address) String() string { return fmt.Sprintf("address %s dev %s", a.Prefix, a.Link) }

// String is the neighbour as plans and errors show it.
func (n Neighbour) String() string {
	return fmt.Sprintf("neighbour %s mac %s dev %s", n.IP, n.MAC, n.Link)
}

// String is the nexthop as plans and errors show it.
func (n Nexthop) String() string {
	var t line
	t.add("nexthop", fmt.Sprintf("%#x", n.ID))
	t.add("via", n.Via)
	t.add("dev", n.Link)
	t.addIf(n.Dst.IsValid(), "id", n.VNI)
	t.addIf(n.Dst.IsValid(), "dst", n.Dst)
	return t.String()
}

// String is the route as plans and errors show it.
func (r Route) String() string {
	var t line
	t.add("route", r.Dst)
	if r.Type != Unicast {
		t = append(t, string(r.Type))
	}
	t.add("table", r.Table)
	t.addIf(r.Nexthop != 0, "nexthop", fmt.Sprintf("%#x", r.Nexthop))
	t.addIf(r.Via.IsValid(), "via", r.Via)
	t.addIf(r.Link != "", "dev", r.Link)
	t.addIf(r.Source.IsValid(), "src", r.Source)
	t.addIf(r.MTU != 0, "mtu", r.MTU)
	t.addIf(r.Metric != 0, "metric", r.Metric)
	return t.String()
}

// String is the rule as plans and errors show it.
func (r Rule) String() string {
	var t line
	t.add("rule", r.Priority)
	t.addIf(r.From.IsValid(), "from", r.From)
	t.addIf(r.To.IsValid(), "to", r.To)
	t.addIf(r.IIf != "", "iif", r.IIf)
	t.addIf(r.Mark != 0, "mark", fmt.Sprintf("%#x", r.Mark))
	t.add("table", r.Table)
	return t.String()
}
