package netops

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Decision is what the kernel does with a packet.
type Decision struct {
	Route Route  // that matches
	Link  string // by which the packet leaves: of a group, by the member that the flow takes
	Via   netip.Addr
}

// Decide asks the kernel where it would send a packet, of a flow with these ports. It looks rules and routes up as for the
// packet itself, the reverse path filter included, and does not tell which rule it was. A packet that is refused is an error.
func (k *Kernel) Decide(p Packet, protocol uint8, from, to uint16) (Decision, error) {
	links, err := k.route.links()
	if err != nil {
		return Decision{}, fmt.Errorf("read links: %w", err)
	}
	in := 0
	for index, l := range links {
		if p.IIf != "" && l.Name == p.IIf {
			in = index
		}
	}
	if p.IIf != "" && in == 0 {
		return Decision{}, fmt.Errorf("look up the route to %s: no link %s", p.To, p.IIf)
	}
	// With RTM_F_LOOKUP_TABLE the answer has the table in which the route is, else always the main one.
	ask := func(flags uint32) (Route, error) {
		header := unix.RtMsg{Family: unix.AF_INET, Dst_len: 32, Src_len: 32, Flags: flags | unix.RTM_F_LOOKUP_TABLE}
		if !p.From.IsValid() {
			header.Src_len = 0
		}
		replies, err := k.route.roundTrip(message{kind: unix.RTM_GETROUTE, header: header, fields: []field{
			optional(unix.RTA_DST, &p.To), optional(unix.RTA_SRC, &p.From), optional(unix.RTA_IIF, &in), optional(unix.RTA_MARK, &p.Mark),
			optional(unix.RTA_IP_PROTO, &protocol), optional(unix.RTA_SPORT, &from), optional(unix.RTA_DPORT, &to),
		}})
		if err == nil && len(replies) == 0 {
			err = errors.New("no answer")
		}
		if err != nil {
			return Route{}, fmt.Errorf("look up the route to %s: %w", p.To, err)
		}
		r, _, err := decodeRoute(replies[0].Data, links)
		return r, err
	}
	var d Decision
	taken, err := ask(0)
	if err != nil {
		return d, err
	}
	d.Link, d.Via = taken.Link, taken.Via
	// The route of the table, not what follows from it for this packet.
	if d.Route, err = ask(unix.RTM_F_FIB_MATCH); err == nil && d.Route.Nexthop != 0 {
		d.Route.Link, d.Route.Via = "", netip.Addr{} // the kernel adds those of a member
	}
	return d, err
}
