package netops

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// Ids of nexthops and groups: the kind in the upper byte, the address family in the next bit, and a number, which comes
// from an address of that family. So ids are unique.
const (
	// A remote end of the overlay: offset of its internal address in the internal CIDR.
	nexthopEnd        = NexthopBase
	NexthopTunnelBase = NexthopBase + 1<<24 // a tunnel: last bits of its local address
	// The gateways or tunnels to which packets for a peer are sent: offset of a gateway's internal address.
	NexthopGroupBase = NexthopBase + 2<<24
	nexthopArrival   = NexthopBase + 3<<24 // the gateways from which packets of a peer may come: likewise

	nexthopKind = 0xff << 24
	// The offset in the widest internal CIDR, a /8, has one bit more. It is the same for all nexthops of a namespace:
	// a node has those of gateways, in the second half of the CIDR, a gateway those of nodes.
	nexthopNumber = 1<<23 - 1
)

// NexthopID returns the id of the nexthop object for a remote end, from its internal address.
func NexthopID(internalCIDR netip.Prefix, internal netip.Addr) uint32 {
	return nexthopID(nexthopEnd, internal, lastBits(internal)-lastBits(internalCIDR.Masked().Addr()))
}

// tunnelNexthopID returns the id of the nexthop object for a tunnel, from its local address.
func tunnelNexthopID(address netip.Addr) uint32 {
	return nexthopID(NexthopTunnelBase, address, lastBits(address))
}

// lastBits returns the last 32 bits of an address, as a number.
func lastBits(a netip.Addr) uint32 {
	b := a.AsSlice()
	return binary.BigEndian.Uint32(b[len(b)-4:])
}

// nexthopID returns the id of a kind and number, for the family of an address.
func nexthopID(kind uint32, a netip.Addr, number uint32) uint32 {
	family := uint32(a.BitLen() / 128) // 0: IPv4, 1: IPv6
	return kind | family<<23 | number&nexthopNumber
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
