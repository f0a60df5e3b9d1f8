package plain

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"

	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// socket is an rtnetlink socket. The netlink library has neither links without checksums nor ports in entries of
// forwarding databases.
type socket struct{ conn *netlink.Conn }

// openSocket opens it in the network namespace of the calling thread.
func openSocket() (*socket, error) {
	conn, err := netlink.Dial(unix.NETLINK_ROUTE, nil)
	return &socket{conn}, err
}

func (s *socket) close() error { return s.conn.Close() }

// vxlan is a VXLAN link as this driver creates it.
type vxlan struct {
	name  string
	mtu   int    // at first: it is not the driver's
	group uint32 // likewise
	mac   net.HardwareAddr
	vni   uint32
	port  uint16 // to which it listens, and from which it sends
}

// outerTTL is that of the tunnel's packets outside.
const outerTTL = 64

// create creates a link without ARP and sets it up, so that a port in use is an error of this tunnel alone. Its packets
// have no UDP checksum, because NAT spoils that of packets from a process of this host: their inner checksum is left to
// the network card, and NAT takes the outer one for it (inet_proto_csum_replace4 in net/core/utils.c).
func (s *socket) create(l vxlan) error {
	ae := netlink.NewAttributeEncoder()
	ae.String(unix.IFLA_IFNAME, l.name)
	ae.Uint32(unix.IFLA_MTU, uint32(l.mtu))
	ae.Uint32(unix.IFLA_GROUP, l.group)
	ae.Bytes(unix.IFLA_ADDRESS, l.mac)
	ae.Nested(unix.IFLA_LINKINFO, func(info *netlink.AttributeEncoder) error {
		info.String(unix.IFLA_INFO_KIND, "vxlan")
		info.Nested(unix.IFLA_INFO_DATA, func(data *netlink.AttributeEncoder) error {
			data.Uint32(nl.IFLA_VXLAN_ID, l.vni)
			data.Uint8(nl.IFLA_VXLAN_TTL, outerTTL)
			data.Uint8(nl.IFLA_VXLAN_LEARNING, 0)
			data.Uint8(nl.IFLA_VXLAN_UDP_CSUM, 0)
			data.Bytes(nl.IFLA_VXLAN_PORT, binary.BigEndian.AppendUint16(nil, l.port))
			// The upper end is excluded (udp_flow_src_port in include/net/udp.h).
			data.Bytes(nl.IFLA_VXLAN_PORT_RANGE, binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, l.port), l.port+1))
			return nil
		})
		return nil
	})
	if err := s.change(unix.RTM_NEWLINK, netlink.Create|netlink.Excl, unix.IfInfomsg{Flags: unix.IFF_NOARP, Change: unix.IFF_NOARP}, ae); err != nil {
		return err
	}
	err := errors.Join(s.withoutIPv6(l.name), s.named(unix.RTM_SETLINK, l.name, unix.IFF_UP, nil))
	if err != nil {
		return errors.Join(err, s.named(unix.RTM_DELLINK, l.name, 0, nil))
	}
	return nil
}

// withoutIPv6 keeps the kernel from giving a link an IPv6 address once it is up, and announcing it to the remote end.
func (s *socket) withoutIPv6(name string) error {
	err := s.named(unix.RTM_SETLINK, name, 0, func(ae *netlink.AttributeEncoder) {
		ae.Nested(unix.IFLA_AF_SPEC, func(families *netlink.AttributeEncoder) error {
			families.Nested(unix.AF_INET6, func(ipv6 *netlink.AttributeEncoder) error {
				ipv6.Uint8(unix.IFLA_INET6_ADDR_GEN_MODE, nl.IN6_ADDR_GEN_MODE_NONE)
				return nil
			})
			return nil
		})
	})
	if errors.Is(err, unix.EAFNOSUPPORT) { // no IPv6 in kernel or link
		return nil
	}
	return err
}

// named changes the link of that name: flags to set, and attributes.
func (s *socket) named(kind netlink.HeaderType, name string, flags uint32, attributes func(*netlink.AttributeEncoder)) error {
	ae := netlink.NewAttributeEncoder()
	ae.String(unix.IFLA_IFNAME, name)
	if attributes != nil {
		attributes(ae)
	}
	return s.change(kind, 0, unix.IfInfomsg{Flags: flags, Change: flags}, ae)
}

// change sends a request with a header, one of the structs of package unix.
func (s *socket) change(kind netlink.HeaderType, flags netlink.HeaderFlags, header any, ae *netlink.AttributeEncoder) error {
	attributes, err := ae.Encode()
	if err != nil {
		return err
	}
	data, err := binary.Append(nil, binary.NativeEndian, header)
	if err != nil {
		return err
	}
	request := netlink.Header{Type: kind, Flags: netlink.Request | netlink.Acknowledge | flags}
	_, err = s.conn.Execute(netlink.Message{Header: request, Data: append(data, attributes...)})
	return err
}

// setRemote replaces the remote end of frames to a MAC address in one step (vxlan_fdb_replace in
// drivers/net/vxlan/vxlan_core.c).
func (s *socket) setRemote(link int, mac net.HardwareAddr, remote netip.AddrPort) error {
	ae := netlink.NewAttributeEncoder()
	ae.Bytes(unix.NDA_LLADDR, mac)
	ae.Bytes(unix.NDA_DST, remote.Addr().Unmap().AsSlice())
	ae.Bytes(unix.NDA_PORT, binary.BigEndian.AppendUint16(nil, remote.Port()))
	return s.change(unix.RTM_NEWNEIGH, netlink.Create|netlink.Replace, entryOf(link), ae)
}

// entryOf returns the header of a permanent entry of a link.
func entryOf(link int) unix.NdMsg {
	return unix.NdMsg{Family: unix.AF_BRIDGE, Ifindex: int32(link), State: unix.NUD_PERMANENT | unix.NUD_NOARP, Flags: unix.NTF_SELF}
}

// remote returns the remote end of frames to a MAC address, the zero value if there is none. An entry has no port if it
// is the one on which the link listens.
func (s *socket) remote(link int, mac net.HardwareAddr, listenPort uint16) (netip.AddrPort, error) {
	data, err := binary.Append(nil, binary.NativeEndian, entryOf(link))
	if err != nil {
		return netip.AddrPort{}, err
	}
	header := netlink.Header{Type: unix.RTM_GETNEIGH, Flags: netlink.Request | netlink.Dump}
	entries, err := s.conn.Execute(netlink.Message{Header: header, Data: data})
	if err != nil {
		return netip.AddrPort{}, err
	}
	for _, e := range entries {
		if remote, ok := decode(e.Data, link, mac, listenPort); ok {
			return remote, nil
		}
	}
	return netip.AddrPort{}, nil
}

func decode(data []byte, link int, mac net.HardwareAddr, port uint16) (remote netip.AddrPort, ok bool) {
	if len(data) < unix.SizeofNdMsg || binary.NativeEndian.Uint32(data[4:]) != uint32(link) {
		return remote, false
	}
	ad, err := netlink.NewAttributeDecoder(data[unix.SizeofNdMsg:])
	if err != nil {
		return remote, false
	}
	var address netip.Addr
	for ad.Next() {
		switch ad.Type() {
		case unix.NDA_LLADDR:
			ok = slices.Equal(ad.Bytes(), mac)
		case unix.NDA_DST:
			address, _ = netip.AddrFromSlice(ad.Bytes())
		case unix.NDA_PORT:
			if b := ad.Bytes(); len(b) == 2 {
				port = binary.BigEndian.Uint16(b)
			}
		}
	}
	return netip.AddrPortFrom(address, port), ok && address.IsValid()
}
