package kernel

import (
	"net/netip"

	raw "github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/netops"
)

// rtaNexthopID is RTA_NH_ID of linux/rtnetlink.h, the id of a nexthop object.
const rtaNexthopID = 30

// routeTypes are the kernel's numbers of the route types.
var routeTypes = map[netops.RouteType]uint8{
	netops.Unicast:     unix.RTN_UNICAST,
	netops.Unreachable: unix.RTN_UNREACHABLE,
	netops.Blackhole:   unix.RTN_BLACKHOLE,
	netops.Prohibit:    unix.RTN_PROHIBIT,
	netops.Throw:       unix.RTN_THROW,
	netops.Local:       unix.RTN_LOCAL,
}

// fields returns the attributes of a route. dst is the address of its destination, link the index of its link.
func routeFields(r *netops.Route, dst *netip.Addr, link *int) []field {
	return []field{
		optional(unix.RTA_TABLE, &r.Table),
		optional(unix.RTA_DST, dst),
		optional(unix.RTA_PRIORITY, &r.Metric),
		optional(rtaNexthopID, &r.Nexthop),
		optional(unix.RTA_GATEWAY, &r.Via),
		optional(unix.RTA_PREFSRC, &r.Source),
		optional(unix.RTA_OIF, link),
		// Sent also without content: routes with a nexthop object and without metrics share the metrics of other routes
		// with the same object, table and metric (fib_create_info in net/ipv4/fib_semantics.c).
		required(unix.RTA_METRICS, []field{optional(unix.RTAX_MTU, &r.MTU)}),
	}
}

// changeRoute adds a route, replaces the route of the same table, destination and metric, or deletes our route of these
// and the same type. Adding is an error if a foreign route exists.
func (s *routeSocket) changeRoute(op netops.Op, r netops.Route, link int) error {
	header := unix.RtMsg{
		Family: unix.AF_INET, Dst_len: uint8(r.Dst.Bits()), Protocol: netops.Protocol, Scope: unix.RT_SCOPE_UNIVERSE, Type: routeTypes[r.Type],
	}
	switch {
	case r.Type == netops.Local:
		header.Scope = unix.RT_SCOPE_HOST
	case r.Via.IsValid():
		header.Flags = unix.RTNH_F_ONLINK
	case r.Link != "":
		header.Scope = unix.RT_SCOPE_LINK // without a gateway, the destination is on the link
	}
	how := raw.Excl
	switch op {
	case netops.Replace:
		how = raw.Replace
	case netops.Remove:
		// RT_SCOPE_NOWHERE matches any scope. The nexthop object is not compared: if it is deleted, and the route with
		// it, the kernel would return a different error.
		header.Scope = unix.RT_SCOPE_NOWHERE
		r.Nexthop, r.MTU, r.Source = 0, 0, netip.Addr{}
	}
	dst := r.Dst.Addr()
	return s.execute(changing(op, unix.RTM_NEWROUTE, how, header, routeFields(&r, &dst, &link)...))
}

// routes reads our routes of all tables, sorted, because they are compared twice. The kernel filters by protocol, so
// that the number of foreign routes does not matter.
func (s *routeSocket) routes(links map[int]netops.Link) ([]netops.Route, error) {
	all, err := s.readRoutes(links, unix.RtMsg{Family: unix.AF_INET, Protocol: netops.Protocol}, 0)
	return netops.InOrder(all), err
}

// readRoutes reads the routes that match the fields of a header, of one table or, with 0, of all.
func (s *routeSocket) readRoutes(links map[int]netops.Link, like unix.RtMsg, table int) ([]netops.Route, error) {
	request := message{kind: unix.RTM_GETROUTE, header: like, fields: []field{optional(unix.RTA_TABLE, &table)}}
	return collect(s, request, func(data []byte) (netops.Route, bool, error) {
		r, _, err := decodeRoute(data, links)
		if r.Nexthop != 0 { // the kernel adds attributes of the nexthop object
			r.Link, r.Via = "", netip.Addr{}
		}
		return r, true, err
	})
}

// decodeRoute returns a route and its header. The type of a route is "" if it is none of routeTypes.
func decodeRoute(data []byte, links map[int]netops.Link) (r netops.Route, header unix.RtMsg, err error) {
	dst, link := netip.IPv4Unspecified(), 0 // the default route has no destination attribute
	err = unpack(data, &header, routeFields(&r, &dst, &link)...)
	r.Dst = netip.PrefixFrom(dst, int(header.Dst_len))
	r.Link = links[link].Name
	for name, number := range routeTypes {
		if number == header.Type {
			r.Type = name
		}
	}
	return r, header, err
}
