package netops

import (
	"encoding/binary"
	"net/netip"

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

// setNexthop creates a nexthop object, or changes the one of that id in one step.
func (s *routeSocket) setNexthop(n Nexthop, linkIndex int) error {
	return s.execute(message{
		kind:   unix.RTM_NEWNEXTHOP,
		flags:  raw.Create | raw.Replace,
		header: unix.Nhmsg{Family: unix.AF_INET, Protocol: Protocol, Flags: unix.RTNH_F_ONLINK},
		attrs: func(ae *raw.AttributeEncoder) {
			ae.Uint32(unix.NHA_ID, n.ID)
			ae.Uint32(unix.NHA_OIF, uint32(linkIndex))
			ae.Bytes(unix.NHA_GATEWAY, n.Via.AsSlice())
			if !n.Dst.IsValid() {
				return
			}
			ae.Uint16(unix.NHA_ENCAP_TYPE, lwtunnelEncapIP)
			ae.Nested(unix.NHA_ENCAP, func(encap *raw.AttributeEncoder) error {
				encap.Bytes(lwtunnelID, binary.BigEndian.AppendUint64(nil, uint64(n.VNI)))
				encap.Bytes(lwtunnelDst, n.Dst.AsSlice())
				encap.Uint8(lwtunnelTTL, outerTTL)
				return nil
			})
		},
	})
}

// deleteNexthop deletes a nexthop object, and by that the routes that use it.
func (s *routeSocket) deleteNexthop(id uint32) error {
	return s.execute(message{
		kind:   unix.RTM_DELNEXTHOP,
		header: unix.Nhmsg{},
		attrs:  func(ae *raw.AttributeEncoder) { ae.Uint32(unix.NHA_ID, id) },
	})
}

// nexthops reads the nexthop objects of our band that lead to our links. (One that others led elsewhere is missing,
// and setNexthop leads it back.)
func (s *routeSocket) nexthops(links map[int]Link) ([]Nexthop, error) {
	return ofLinks(links, Link.ours, func(index int, l Link) ([]Nexthop, error) {
		request := message{
			kind:   unix.RTM_GETNEXTHOP,
			header: unix.Nhmsg{},
			attrs:  func(ae *raw.AttributeEncoder) { ae.Uint32(unix.NHA_OIF, uint32(index)) },
		}
		return collect(s, request, func(data []byte) (Nexthop, bool, error) {
			n, err := decodeNexthop(data, map[int]string{index: l.Name})
			return n, isOurNexthop(n.ID), err
		})
	})
}

// isOurNexthop reports whether the id is in our band.
func isOurNexthop(id uint32) bool { return id&NexthopMask == NexthopBase }

func decodeNexthop(data []byte, linkNames map[int]string) (Nexthop, error) {
	var header unix.Nhmsg
	var n Nexthop
	ad, err := split(data, &header)
	if err != nil {
		return n, err
	}
	for ad.Next() {
		switch ad.Type() {
		case unix.NHA_ID:
			n.ID = ad.Uint32()
		case unix.NHA_OIF:
			n.Link = linkNames[int(ad.Uint32())]
		case unix.NHA_GATEWAY:
			n.Via, _ = netip.AddrFromSlice(ad.Bytes())
		case unix.NHA_ENCAP:
			ad.Nested(func(encap *raw.AttributeDecoder) error {
				n.VNI, n.Dst = decodeEncap(encap)
				return nil
			})
		}
	}
	return n, ad.Err()
}

// decodeEncap reads the encapsulation of LWTUNNEL_ENCAP_IP: identifier and far end.
func decodeEncap(ad *raw.AttributeDecoder) (vni uint32, dst netip.Addr) {
	for ad.Next() {
		switch ad.Type() {
		case lwtunnelID:
			if id := ad.Bytes(); len(id) == 8 {
				vni = uint32(binary.BigEndian.Uint64(id))
			}
		case lwtunnelDst:
			dst, _ = netip.AddrFromSlice(ad.Bytes())
		}
	}
	return vni, dst
}
