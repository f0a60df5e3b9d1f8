package netops

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
)

// Kinds of nexthop ids, in the upper byte. The lower three bytes come from an address, so that ids are unique.
const (
	// A remote end of the overlay: offset of its internal address in the internal CIDR.
	nexthopEnd        = NexthopBase
	NexthopTunnelBase = NexthopBase + 1<<24 // a tunnel: last bytes of its local address
	// The gateways or tunnels to which packets for a peer are sent: offset of a gateway's internal address.
	NexthopGroupBase = NexthopBase + 2<<24
	nexthopArrival   = NexthopBase + 3<<24 // the gateways from which packets of a peer may come: likewise

	nexthopKind = 0xff << 24
)

// NexthopID returns the id of the nexthop object for a remote end, from its internal address.
func NexthopID(internalCIDR netip.Prefix, internal netip.Addr) uint32 {
	return nexthopEnd | cidr.Offset(internalCIDR, internal)&^nexthopKind
}

// tunnelNexthopID returns the id of the nexthop object for a tunnel, from its local address.
func tunnelNexthopID(address netip.Addr) uint32 {
	a := address.As4()
	return NexthopTunnelBase | binary.BigEndian.Uint32(a[:])&^nexthopKind
}

// ofKind returns the id with its kind replaced.
func ofKind(kind, id uint32) uint32 { return kind | id&^nexthopKind }

// newGroup returns a group of the members for which used is true. A group must have members: if used is true for none,
// all are in it.
func newGroup[T any](id uint32, all []T, nexthop func(T) uint32, used func(T) bool) NexthopGroup {
	members := Only(all, used)
	if len(members) == 0 {
		members = all
	}
	g := NexthopGroup{ID: id}
	for _, m := range members {
		g.Members = append(g.Members, nexthop(m))
	}
	slices.Sort(g.Members)
	return g
}
