package netops

import (
	"cmp"
	"net/netip"
)

// Packet has the fields of a packet that rules and routes match.
type Packet struct {
	From, To netip.Addr
	IIf      string // incoming link; "": sent by this host
	Mark     uint32
}

// Lookup returns the first rule of the state that leads to a route for the packet, and that route. false: there is
// none, and foreign rules and routes apply.
func (s State) Lookup(p Packet) (rule Rule, route Route, ok bool) {
	for _, r := range s.Rules {
		if ok && r.Priority >= rule.Priority || !r.Selects(p) {
			continue
		}
		if found, is := s.Longest(r.Table, p.To); is {
			rule, route, ok = r, found, true
		}
	}
	return rule, route, ok
}

// Selects reports whether the rule matches a packet.
func (r Rule) Selects(p Packet) bool {
	in := func(within netip.Prefix, a netip.Addr) bool { return !within.IsValid() || within.Contains(a) }
	return in(r.From, p.From) && in(r.To, p.To) && (r.IIf == "" || r.IIf == cmp.Or(p.IIf, Loopback)) && (r.Mark == 0 || r.Mark == p.Mark)
}

// Longest returns the route that the kernel selects for an address in a table.
func (s State) Longest(table int, to netip.Addr) (best Route, ok bool) {
	for _, r := range s.Routes {
		longer, same := r.Dst.Bits() > best.Dst.Bits(), r.Dst.Bits() == best.Dst.Bits()
		if r.Table == table && r.Dst.Contains(to) && (!ok || longer || same && r.Metric < best.Metric) {
			best, ok = r, true
		}
	}
	return best, ok
}
