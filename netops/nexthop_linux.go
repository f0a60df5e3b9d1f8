package netops

import (
	"encoding/binary"

	raw "github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// From linux/lwtunnel.h: a light-weight tunnel that gives each packet the far end of a collect-metadata device.
const (
	lwtunnelEncapIP = 2 // LWTUNNEL_ENCAP_IP

	lwtunnelID  = 1 // LWTUNNEL_IP_ID: 64 bits, network byte order
	lwtunnelDst = 2 // LWTUNNEL_IP_DST
	lwtunnelTTL = 4 // LWTUNNEL_IP_TTL
)

// outerTTL is what the overlay's packets begin with. Unset, Geneve would send them with 0, and no router would
// pass them on (geneve_xmit_skb in drivers/net/geneve.c; VXLAN takes the route's).
const outerTTL = 64

// encapsulation is a nexthop's as the kernel has it. The zero value is none.
type encapsulation struct {
	kind, vni []byte
	ttl       uint8
}

// fields are the attributes of a nexthop: link is the index of its link.
func (n *Nexthop) fields(link *int, encap *encapsulation) []field {
	return []field{
		optional(unix.NHA_ID, &n.ID),
		optional(unix.NHA_OIF, link),
		optional(unix.NHA_GATEWAY, &n.Via),
		optional(unix.NHA_ENCAP_TYPE, &encap.kind),
		optional(unix.NHA_ENCAP, []field{optional(lwtunnelID, &encap.vni), optional(lwtunnelDst, &n.Dst), optional(lwtunnelTTL, &encap.ttl)}),
	}
}

// changeNexthop creates a nexthop object, changes the one of that id in one step, or deletes it, and by that the routes that
// use it.
func (s *routeSocket) changeNexthop(op Op, n Nexthop, link int) error {
	header := unix.Nhmsg{Family: unix.AF_INET, Protocol: Protocol, Flags: unix.RTNH_F_ONLINK}
	if op == Remove { // names the object and nothing else
		n, header, link = Nexthop{ID: n.ID}, unix.Nhmsg{}, 0
	}
	var encap encapsulation
	if n.Dst.IsValid() {
		encap.kind = binary.NativeEndian.AppendUint16(nil, lwtunnelEncapIP)
		encap.vni, encap.ttl = binary.BigEndian.AppendUint64(nil, uint64(n.VNI)), outerTTL
	}
	return s.execute(changing(op, unix.RTM_NEWNEXTHOP, raw.Replace, header, n.fields(&link, &encap)...))
}

// nexthops reads the nexthop objects of our band that lead to our links. (One that others led elsewhere is missing,
// and changeNexthop leads it back.)
func (s *routeSocket) nexthops(links map[int]Link) ([]Nexthop, error) {
	return ofLinks(links, Link.ours, func(index int, l Link) ([]Nexthop, error) {
		request := message{kind: unix.RTM_GETNEXTHOP, header: unix.Nhmsg{}, fields: []field{optional(unix.NHA_OIF, &index)}}
		return collect(s, request, func(data []byte) (Nexthop, bool, error) {
			n, err := decodeNexthop(data)
			n.Link = l.Name
			return n, isOurNexthop(n.ID), err
		})
	})
}

// isOurNexthop reports whether the id is in our band.
func isOurNexthop(id uint32) bool { return id&NexthopMask == NexthopBase }

// decodeNexthop returns a nexthop without the name of its link.
func decodeNexthop(data []byte) (n Nexthop, err error) {
	var header unix.Nhmsg
	var link int
	var encap encapsulation
	err = unpack(data, &header, n.fields(&link, &encap)...)
	if len(encap.vni) == 8 {
		n.VNI = uint32(binary.BigEndian.Uint64(encap.vni))
	}
	return n, err
}
