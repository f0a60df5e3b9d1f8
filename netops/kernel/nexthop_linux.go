package kernel

import (
	"encoding/binary"

	raw "github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/netops"
)

// From linux/lwtunnel.h: a lightweight tunnel that sets the remote end of packets on a collect-metadata device.
const (
	lwtunnelEncapIP = 2 // LWTUNNEL_ENCAP_IP

	lwtunnelID  = 1 // LWTUNNEL_IP_ID: 64 bits, network byte order
	lwtunnelDst = 2 // LWTUNNEL_IP_DST
	lwtunnelTTL = 4 // LWTUNNEL_IP_TTL
)

// outerTTL is the TTL of the overlay's packets. By default Geneve sends them with TTL 0, and routers drop them
// (geneve_xmit_skb in drivers/net/geneve.c; VXLAN uses the route's).
const outerTTL = 64

// encapsulation is the encapsulation of a nexthop in the kernel's form. The zero value is none.
type encapsulation struct {
	kind, vni []byte
	ttl       uint8
}

// fields returns the attributes of a nexthop. link is the index of its link.
func nexthopFields(n *netops.Nexthop, link *int, encap *encapsulation) []field {
	return []field{
		optional(unix.NHA_ID, &n.ID),
		optional(unix.NHA_OIF, link),
		optional(unix.NHA_GATEWAY, &n.Via),
		optional(unix.NHA_ENCAP_TYPE, &encap.kind),
		optional(unix.NHA_ENCAP, []field{optional(lwtunnelID, &encap.vni), optional(lwtunnelDst, &n.Dst), optional(lwtunnelTTL, &encap.ttl)}),
	}
}

// changeNexthop creates a nexthop object, replaces the one of that id atomically, or deletes it together with its
// users.
func (s *routeSocket) changeNexthop(op netops.Op, n netops.Nexthop, link int) error {
	header := unix.Nhmsg{Family: unix.AF_INET, Protocol: netops.Protocol}
	if n.Via.IsValid() {
		header.Flags = unix.RTNH_F_ONLINK
	}
	if op == netops.Remove { // only the id
		n, header, link = netops.Nexthop{ID: n.ID}, unix.Nhmsg{}, 0
	}
	var encap encapsulation
	if n.Dst.IsValid() {
		encap.kind = binary.NativeEndian.AppendUint16(nil, lwtunnelEncapIP)
		encap.vni, encap.ttl = binary.BigEndian.AppendUint64(nil, uint64(n.VNI)), outerTTL
	}
	return s.execute(changing(op, unix.RTM_NEWNEXTHOP, raw.Replace, header, nexthopFields(&n, &link, &encap)...))
}

// nexthops reads the nexthop objects of our band on our links. (An object that another program moved to another link is
// missing, so that changeNexthop restores it.)
func (s *routeSocket) nexthops(links map[int]netops.Link) ([]netops.Nexthop, error) {
	return ofLinks(links, netops.Link.Ours, func(index int, l netops.Link) ([]netops.Nexthop, error) {
		request := message{kind: unix.RTM_GETNEXTHOP, header: unix.Nhmsg{}, fields: []field{optional(unix.NHA_OIF, &index)}}
		return collect(s, request, func(data []byte) (netops.Nexthop, bool, error) {
			n, err := decodeNexthop(data)
			n.Link = l.Name
			return n, isOurNexthop(n.ID), err
		})
	})
}

// changeNexthopGroup creates a group, replaces the members of the one of that id atomically, or deletes it together
// with its routes. A nexthop object of that id that is no group is an error.
func (s *routeSocket) changeNexthopGroup(op netops.Op, g netops.NexthopGroup) error {
	header := unix.Nhmsg{Protocol: netops.Protocol} // a group has no address family
	if op == netops.Remove {
		g, header = netops.NexthopGroup{ID: g.ID}, unix.Nhmsg{}
	}
	var members []byte
	for _, id := range g.Members { // each a struct nexthop_grp of linux/nexthop.h: id, weight less one, reserved
		members = binary.NativeEndian.AppendUint32(members, id)
		members = append(members, 0, 0, 0, 0)
	}
	return s.execute(changing(op, unix.RTM_NEWNEXTHOP, raw.Replace, header, groupFields(&g, &members)...))
}

// fields returns the attributes of a group.
func groupFields(g *netops.NexthopGroup, members *[]byte) []field {
	return []field{optional(unix.NHA_ID, &g.ID), optional(unix.NHA_GROUP, members)}
}

// nexthopGroups reads the groups of our band.
func (s *routeSocket) nexthopGroups() ([]netops.NexthopGroup, error) {
	request := message{kind: unix.RTM_GETNEXTHOP, header: unix.Nhmsg{}, fields: []field{required(unix.NHA_GROUPS, new([]byte))}}
	return collect(s, request, func(data []byte) (g netops.NexthopGroup, of bool, err error) {
		var header unix.Nhmsg
		var members []byte
		err = unpack(data, &header, groupFields(&g, &members)...)
		for ; len(members) >= 8; members = members[8:] {
			g.Members = append(g.Members, binary.NativeEndian.Uint32(members))
			g.Uneven = g.Uneven || binary.NativeEndian.Uint32(members[4:]) != 0
		}
		return g, isOurNexthop(g.ID), err
	})
}

// isOurNexthop reports whether the id is in our band.
func isOurNexthop(id uint32) bool { return id&netops.NexthopMask == netops.NexthopBase }

// decodeNexthop returns a nexthop without the name of its link.
func decodeNexthop(data []byte) (n netops.Nexthop, err error) {
	var header unix.Nhmsg
	var link int
	var encap encapsulation
	err = unpack(data, &header, nexthopFields(&n, &link, &encap)...)
	if len(encap.vni) == 8 {
		n.VNI = uint32(binary.BigEndian.Uint64(encap.vni))
	}
	return n, err
}
