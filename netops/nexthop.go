package netops

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
)

// Kinds of nexthop ids, by their upper byte. The lower three are from an address, so that no two collide.
const (
	// A far end of the overlay: offset of its internal address in the internal CIDR.
	nexthopEnd    = NexthopBase
	nexthopTunnel = NexthopBase + 1<<24 // a tunnel: end of this side's address in it
	// The gateways or tunnels that packets for a peer take: offset of a gateway's internal address.
	nexthopGroup   = NexthopBase + 2<<24
	nexthopArrival = NexthopBase + 3<<24 // the gateways that packets of a peer may come from: likewise

	nexthopKind = 0xff << 24
)

// NexthopID returns the id of the nexthop object for a far end, from its internal address.
func NexthopID(internalCIDR netip.Prefix, internal netip.Addr) uint32 {
	return nexthopEnd | cidr.Offset(internalCIDR, internal)&^nexthopKind
}

// tunnelNexthopID returns the id of the nexthop object for a tunnel, from this side's address in it.
func tunnelNexthopID(address netip.Addr) uint32 {
	a := address.As4()
	return nexthopTunnel | binary.BigEndian.Uint32(a[:])&^nexthopKind
}

// ofKind returns the id of the group that has the lower bytes of a nexthop's.
func ofKind(kind, id uint32) uint32 { return kind | id&^nexthopKind }

// newGroup returns a group of those members of which used holds. A group never is without members: where used holds of
// none, all are in it.
func newGroup[T any](id uint32, all []T, nexthop func(T) uint32, used func(T) bool) NexthopGroup {
	members := only(all, used)
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
