package netops

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Printable replaces characters that a terminal would interpret: the kernel accepts any bytes in a name.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
}

// words joins the non-empty parts of a description.
func words(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(word string) bool { return word == "" }), " ")
}

// opt returns a word and its value, or "" for the zero value.
func opt[T comparable](word string, value T) string {
	var none T
	if value == none {
		return ""
	}
	return fmt.Sprintf("%s %v", word, value)
}

// when returns the word if the condition is true.
func when(is bool, word string) string {
	if is {
		return word
	}
	return ""
}

// String returns the link for plans and errors.
func (l Link) String() string {
	return words("link", l.Name, when(l.Kind != KindDevice, string(l.Kind)), opt("port", l.Port), opt("id", l.VNI),
		opt("remote", l.Remote), opt("mac", l.MAC.String()), opt("mtu", l.MTU), opt("group", l.Group),
		when(l.Forwarding, "forwarding"), when(l.MarkedPath, "marked-path"), when(l.LoosePath, "loose-path"))
}

// String returns the membership for plans and errors.
func (m ForeignMember) String() string { return fmt.Sprintf("group %d dev %s", m.Group, m.Link) }

// String returns the address for plans and errors.
func (a Address) String() string { return fmt.Sprintf("address %s dev %s", a.Prefix, a.Link) }

// String returns the neighbour for plans and errors.
func (n Neighbour) String() string {
	return fmt.Sprintf("neighbour %s mac %s dev %s", n.IP, n.MAC, n.Link)
}

// String returns the nexthop for plans and errors.
func (n Nexthop) String() string {
	return words("nexthop", number(n.ID).String(), opt("via", n.Via), opt("dev", n.Link), opt("id", n.VNI), opt("dst", n.Dst))
}

// String returns the group for plans and errors.
func (g NexthopGroup) String() string {
	text := "nexthop-group " + number(g.ID).String()
	for _, id := range g.Members {
		text += " " + number(id).String()
	}
	return text
}

// String returns the route for plans and errors.
func (r Route) String() string {
	return words("route", r.Dst.String(), when(r.Type != Unicast, string(r.Type)), fmt.Sprintf("table %d", r.Table),
		opt("nexthop", number(r.Nexthop)), opt("via", r.Via), opt("dev", r.Link), opt("src", r.Source), opt("mtu", r.MTU),
		opt("metric", r.Metric))
}

// String returns the rule for plans and errors.
func (r Rule) String() string {
	return words("rule", fmt.Sprint(r.Priority), opt("from", r.From), opt("to", r.To), opt("iif", r.IIf),
		opt("mark", number(r.Mark)), cmp.Or(r.Action, fmt.Sprintf("table %d", r.Table)))
}

// number is formatted in hexadecimal.
type number uint32

func (n number) String() string { return fmt.Sprintf("%#x", uint32(n)) }
