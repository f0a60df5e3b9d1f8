package kernel

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/netops"
)

// Decision is the kernel's routing decision for a packet.
type Decision struct {
	Rule  netops.Rule  // leads to the route; the zero value: not known
	Route netops.Route // matching route; for a rejected packet of type Blackhole, Prohibit or Unreachable
	Link  string       // outgoing link; of a group, the member for the flow; "": the packet is rejected

	foreign bool // the rule or the route belongs to another program
}

// String returns the rule and the route.
func (d Decision) String() string {
	switch {
	case d.Rule == netops.Rule{}:
		return d.Route.String()
	case d.Rule.Action != "" && d.Link == "":
		return d.Rule.String()
	}
	return d.Rule.String() + ", " + d.Route.String()
}

// refusals maps the errors of the kernel to the types of routes that reject a packet (fib_props in
// net/ipv4/fib_semantics.c). ENETUNREACH also means that a rule rejects it or that there is no route.
var refusals = map[error]netops.RouteType{
	unix.EINVAL: netops.Blackhole, unix.EACCES: netops.Prohibit, unix.EHOSTUNREACH: netops.Unreachable, unix.ENETUNREACH: netops.Unreachable,
}

// refusalOf returns the route type for an error; "": the error is another one.
func refusalOf(err error) netops.RouteType {
	for cause, kind := range refusals {
		if errors.Is(err, cause) {
			return kind
		}
	}
	return ""
}

// Decide returns the kernel's routing decision for a packet of a flow with these ports. The kernel evaluates rules,
// routes and the reverse path filter as for the packet itself. It does not report the matching rule, or the route that
// rejects a packet: Decide searches them in the current rules and routes. A packet that is dropped for another reason
// is an error.
func (k *Kernel) Decide(p netops.Packet, protocol uint8, from, to uint16) (Decision, error) {
	f, err := k.fib()
	if err != nil {
		return Decision{}, err
	}
	return f.decide(p, flow{protocol: protocol, from: from, to: to})
}

// flow has the other fields of a packet that a lookup can depend on. The zero value has no protocol.
type flow struct {
	tos, protocol uint8
	from, to      uint16 // ports
}

// String returns the flow in the syntax of ip-rule(8).
func (o flow) String() string {
	text := ""
	add := func(selector string, value any, isSet bool) {
		if isSet {
			text += fmt.Sprintf(" "+selector, value)
		}
	}
	add("tos %#x", o.tos, o.tos != 0)
	add("ipproto %d", o.protocol, o.protocol != 0)
	add("sport %d", o.from, o.from != 0)
	add("dport %d", o.to, o.to != 0)
	return strings.TrimPrefix(text, " ")
}

// fib is the state that determines routing decisions: links, rules and routes. Tables are read on first use.
type fib struct {
	socket *routeSocket
	links  map[int]netops.Link
	rules  []markedRule
	tables map[int][]servedRoute
	own    []netops.Route // those of them that are ours

	services []flow // types of service of routes
}

func (k *Kernel) fib() (f fib, err error) {
	f = fib{socket: k.route, tables: map[int][]servedRoute{}}
	if f.links, err = k.route.links(); err != nil {
		return f, fmt.Errorf("read links: %w", err)
	}
	if f.rules, err = k.route.allRules(); err != nil {
		return f, fmt.Errorf("read rules: %w", err)
	}
	return f, nil
}

// servedRoute is a route with its type of service. 0: the route applies to all.
type servedRoute struct {
	netops.Route
	tos uint8
}

// table reads the routes of a table. A table that does not exist is empty.
func (f *fib) table(number int) ([]servedRoute, error) {
	if known, ok := f.tables[number]; ok {
		return known, nil
	}
	request := message{kind: unix.RTM_GETROUTE, header: unix.RtMsg{Family: unix.AF_INET}, fields: []field{optional(unix.RTA_TABLE, &number)}}
	routes, err := collect(f.socket, request, func(data []byte) (servedRoute, bool, error) {
		r, header, err := decodeRoute(data, f.links)
		if header.Protocol == netops.Protocol {
			f.own = append(f.own, r)
		}
		if of := (flow{tos: header.Tos}); header.Tos != 0 && !slices.Contains(f.services, of) {
			f.services = append(f.services, of)
		}
		return servedRoute{r, header.Tos}, true, err
	})
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return nil, fmt.Errorf("read routes of table %d: %w", number, err)
	}
	f.tables[number] = routes
	return routes, nil
}

// candidates returns the routes of a table that apply to a flow, in the kernel's order: those for a type of service
// first.
func (f *fib) candidates(table int, of flow) (all []netops.Route, err error) {
	routes, err := f.table(table)
	for _, route := range routes {
		if route.tos == 0 || route.tos == of.tos {
			all = append(all, route.Route)
		}
	}
	return all, err
}

// match returns the matching rule and route of a packet. It ignores selectors by user and outgoing link. false: there
// is none.
func (f *fib) match(p netops.Packet, of flow) (d Decision, ok bool, err error) {
	least, by := 0, netops.Rule{} // rule with a goto action, and the priority to which it leads
	for _, r := range f.rules {
		if r.Priority < least || !r.takes(p, of) {
			continue
		}
		d = Decision{Rule: r.Rule, Route: netops.Route{Dst: cidr.Single(p.To), Type: netops.RouteType(r.Action)}, foreign: r.protocol != netops.Protocol}
		switch {
		case r.target != 0:
			least, by = r.target, r.Rule
			continue
		case r.Action == "":
			routes, err := f.candidates(r.Table, of)
			if err != nil {
				return d, false, err
			}
			found, is := netops.State{Routes: routes}.Longest(r.Table, p.To)
			if !is || found.Type == netops.Throw || found.Dst.Bits() < int(r.suppress) {
				continue
			}
			// Rules of ours for the main table exempt gateway pods.
			d.Route, d.foreign = found, d.foreign || r.Table != netops.MainTable && !slices.Contains(f.own, found)
		}
		if by != (netops.Rule{}) {
			d.Rule, d.foreign = by, true
		}
		return d, true, nil
	}
	return Decision{}, false, nil
}

// decide implements Decide.
func (f *fib) decide(p netops.Packet, of flow) (Decision, error) {
	taken, refused := f.lookUp(p, of, 0)
	kind := refusalOf(refused)
	if refused != nil && kind == "" {
		return Decision{}, refused
	}
	d, found, err := f.match(p, of)
	switch {
	case err != nil:
		return d, err
	case refused == nil:
		d.Link = taken.Link
		// The route of the table, not the result of its evaluation for this packet.
		if d.Route, err = f.lookUp(p, of, unix.RTM_F_FIB_MATCH); err == nil && d.Route.Nexthop != 0 {
			d.Route.Link, d.Route.Via = "", netip.Addr{} // the kernel adds those of a member
		}
	case !found && kind == netops.Unreachable:
		d.Route = netops.Route{Dst: cidr.Single(p.To), Type: kind}
	case d.Route.Type != kind:
		return Decision{}, refused // EINVAL is also the error for an invalid source address
	}
	return d, err
}

// lookUp returns the route that the kernel selects for a packet, with its table.
func (f *fib) lookUp(p netops.Packet, of flow, flags uint32) (netops.Route, error) {
	in := 0
	for index, l := range f.links {
		if p.IIf != "" && l.Name == p.IIf {
			in = index
		}
	}
	if p.IIf != "" && in == 0 {
		return netops.Route{}, fmt.Errorf("look up the route to %s: no link %s", p.To, p.IIf)
	}
	// RTM_F_LOOKUP_TABLE makes the answer contain the table of the route instead of always the main table.
	header := unix.RtMsg{Family: unix.AF_INET, Dst_len: 32, Src_len: 32, Tos: of.tos, Flags: flags | unix.RTM_F_LOOKUP_TABLE}
	if !p.From.IsValid() {
		header.Src_len = 0
	}
	replies, err := f.socket.roundTrip(message{kind: unix.RTM_GETROUTE, header: header, fields: []field{
		optional(unix.RTA_DST, &p.To), optional(unix.RTA_SRC, &p.From), optional(unix.RTA_IIF, &in), optional(unix.RTA_MARK, &p.Mark),
		optional(unix.RTA_IP_PROTO, &of.protocol), optional(unix.RTA_SPORT, &of.from), optional(unix.RTA_DPORT, &of.to),
	}})
	if err == nil && len(replies) == 0 {
		err = errors.New("no answer")
	}
	if err != nil {
		return netops.Route{}, fmt.Errorf("look up the route to %s: %w", p.To, err)
	}
	r, _, err := decodeRoute(replies[0].Data, f.links)
	return r, err
}
