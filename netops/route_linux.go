package netops

import (
	"net/netip"

	raw "github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// rtaNexthopID is RTA_NH_ID of linux/rtnetlink.h, the id of a nexthop object.
const rtaNexthopID = 30

// addRoute adds a route; one of the same table, destination and metric that is there, and not ours, is an error.
func (s *routeSocket) addRoute(r Route, linkIndex int) error {
	return s.execute(routeMessage(unix.RTM_NEWROUTE, raw.Create|raw.Excl, r, linkIndex))
}

// replaceRoute puts a route in the place of the one of the same table, destination and metric.
func (s *routeSocket) replaceRoute(r Route, linkIndex int) error {
	return s.execute(routeMessage(unix.RTM_NEWROUTE, raw.Create|raw.Replace, r, linkIndex))
}

// deleteRoute deletes our route of a table, destination, metric and type. That a nexthop object is gone, and the
// route with it, would be an error of its own kind: the kernel is not asked to compare it.
func (s *routeSocket) deleteRoute(r Route, linkIndex int) error {
	r.Nexthop, r.MTU, r.Source = 0, 0, netip.Addr{}
	return s.execute(routeMessage(unix.RTM_DELROUTE, 0, r, linkIndex))
}

// routeMessage encodes a route. linkIndex is that of the route's link, if it has one.
func routeMessage(kind uint16, flags raw.HeaderFlags, r Route, linkIndex int) message {
	header := unix.RtMsg{
		Family:   unix.AF_INET,
		Dst_len:  uint8(r.Dst.Bits()),
		Protocol: Protocol,
		Scope:    routeScope(kind, r),
		Type:     routeTypes[r.Type],
	}
	if r.Via.IsValid() {
		header.Flags = unix.RTNH_F_ONLINK
	}
	return message{kind: kind, flags: flags, header: header, attrs: func(ae *raw.AttributeEncoder) {
		ae.Uint32(unix.RTA_TABLE, uint32(r.Table))
		ae.Bytes(unix.RTA_DST, r.Dst.Addr().AsSlice())
		if r.Metric != 0 {
			ae.Uint32(unix.RTA_PRIORITY, uint32(r.Metric))
		}
		if r.Nexthop != 0 {
			ae.Uint32(rtaNexthopID, r.Nexthop)
		}
		if r.Via.IsValid() {
			ae.Bytes(unix.RTA_GATEWAY, r.Via.AsSlice())
		}
		if r.Source.IsValid() {
			ae.Bytes(unix.RTA_PREFSRC, r.Source.AsSlice())
		}
		if r.Link != "" {
			ae.Uint32(unix.RTA_OIF, uint32(linkIndex))
		}
		// Also without content: a route that has a nexthop object and no metrics shares those of any other route
		// with that object, table and metric (fib_create_info in net/ipv4/fib_semantics.c).
		ae.Nested(unix.RTA_METRICS, func(metrics *raw.AttributeEncoder) error {
			if r.MTU != 0 {
				metrics.Uint32(unix.RTAX_MTU, uint32(r.MTU))
			}
			return nil
		})
	}}
}

// routeTypes are the numbers of the types that we use.
var routeTypes = map[RouteType]uint8{
	Unicast:     unix.RTN_UNICAST,
	Unreachable: unix.RTN_UNREACHABLE,
}

// routeTypeOf is the type of that number; "" for those that we do not use.
func routeTypeOf(number uint8) RouteType {
	for name, n := range routeTypes {
		if n == number {
			return name
		}
	}
	return ""
}

// routeScope is the distance of a route's destination: without a gateway it is on the link. A deletion matches
// any scope.
func routeScope(kind uint16, r Route) uint8 {
	switch {
	case kind == unix.RTM_DELROUTE:
		return unix.RT_SCOPE_NOWHERE
	case r.Link != "" && !r.Via.IsValid():
		return unix.RT_SCOPE_LINK
	}
	return unix.RT_SCOPE_UNIVERSE
}

// routes reads our routes of all tables. The kernel leaves out those of other protocols: ten thousand foreign
// routes cost nothing. linkNames gives the names of links by index.
func (s *routeSocket) routes(linkNames map[int]string) ([]Route, error) {
	return s.readRoutes(message{
		kind:   unix.RTM_GETROUTE,
		header: unix.RtMsg{Family: unix.AF_INET, Protocol: Protocol},
	}, linkNames)
}

// table reads the unicast routes of one table, whosever they are.
func (s *routeSocket) table(number int, linkNames map[int]string) ([]Route, error) {
	return s.readRoutes(message{
		kind:   unix.RTM_GETROUTE,
		header: unix.RtMsg{Family: unix.AF_INET, Type: unix.RTN_UNICAST},
		attrs:  func(ae *raw.AttributeEncoder) { ae.Uint32(unix.RTA_TABLE, uint32(number)) },
	}, linkNames)
}

func (s *routeSocket) readRoutes(request message, linkNames map[int]string) ([]Route, error) {
	return collect(s, request, func(data []byte) (Route, bool, error) {
		r, err := decodeRoute(data, linkNames)
		return r, true, err
	})
}

func decodeRoute(data []byte, linkNames map[int]string) (Route, error) {
	var header unix.RtMsg
	var r Route
	ad, err := split(data, &header)
	if err != nil {
		return r, err
	}
	dst := make([]byte, 4) // the default route comes without
	for ad.Next() {
		switch ad.Type() {
		case unix.RTA_TABLE:
			r.Table = int(ad.Uint32())
		case unix.RTA_DST:
			dst = ad.Bytes()
		case unix.RTA_PRIORITY:
			r.Metric = int(ad.Uint32())
		case rtaNexthopID:
			r.Nexthop = ad.Uint32()
		case unix.RTA_GATEWAY:
			r.Via, _ = netip.AddrFromSlice(ad.Bytes())
		case unix.RTA_PREFSRC:
			r.Source, _ = netip.AddrFromSlice(ad.Bytes())
		case unix.RTA_OIF:
			r.Link = linkNames[int(ad.Uint32())]
		case unix.RTA_METRICS:
			ad.Nested(func(metrics *raw.AttributeDecoder) error {
				for metrics.Next() {
					if metrics.Type() == unix.RTAX_MTU {
						r.MTU = int(metrics.Uint32())
					}
				}
				return nil
			})
		}
	}
	r.Dst = prefixOf(dst, header.Dst_len)
	r.Type = routeTypeOf(header.Type)
	if r.Nexthop != 0 { // the kernel adds what the nexthop object says
		r.Link, r.Via = "", netip.Addr{}
	}
	return r, ad.Err()
}
