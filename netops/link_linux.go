package netops

import (
	"encoding/binary"
	"fmt"
	"net"

	raw "github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// skipStats is RTEXT_FILTER_SKIP_STATS of linux/rtnetlink.h: links without their counters.
const skipStats = 1 << 3

// createLink makes an overlay link. It is not up yet, and in its group from the first moment.
func (k *Kernel) createLink(l Link) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr, attrs.MTU, attrs.Group = l.Name, l.MAC, l.MTU, l.Group
	switch l.Kind {
	case KindVXLAN:
		return k.handle.LinkAdd(&netlink.Vxlan{LinkAttrs: attrs, FlowBased: true, Port: int(l.Port)})
	case KindGeneve:
		return k.handle.LinkAdd(&netlink.Geneve{LinkAttrs: attrs, FlowBased: true, Dport: l.Port})
	}
	return fmt.Errorf("no way to make a link of kind %q", l.Kind)
}

// configureLink brings an existing link into the wanted shape and sets it up. Up comes last: the kernel gives
// a link its IPv6 address at that moment.
func (k *Kernel) configureLink(l Link, linkIndex int) error {
	handle := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: linkIndex}}
	if l.Group != 0 {
		if err := k.handle.LinkSetGroup(handle, int(l.Group)); err != nil {
			return fmt.Errorf("set group: %w", err)
		}
	}
	if l.MTU != 0 {
		if err := k.handle.LinkSetMTU(handle, l.MTU); err != nil {
			return fmt.Errorf("set MTU: %w", err)
		}
	}
	if err := k.route.configure(l, linkIndex); err != nil {
		return err
	}
	return k.handle.LinkSetUp(handle)
}

// links reads all links of the namespace, by index.
func (s *routeSocket) links() (map[int]Link, error) {
	found := make(map[int]Link)
	request := message{
		kind:   unix.RTM_GETLINK,
		header: unix.IfInfomsg{},
		attrs:  func(ae *raw.AttributeEncoder) { ae.Uint32(unix.IFLA_EXT_MASK, skipStats) },
	}
	err := s.dump(request, func() { clear(found) }, func(data []byte) error {
		index, l, err := decodeLink(data)
		found[index] = l
		return err
	})
	return found, err
}

func decodeLink(data []byte) (index int, l Link, err error) {
	var header unix.IfInfomsg
	ad, err := split(data, &header)
	if err != nil {
		return 0, l, err
	}
	l.Kind = KindDevice
	l.Down = header.Flags&unix.IFF_UP == 0
	for ad.Next() {
		switch ad.Type() {
		case unix.IFLA_IFNAME:
			l.Name = ad.String()
		case unix.IFLA_MTU:
			l.MTU = int(ad.Uint32())
		case unix.IFLA_GROUP:
			l.Group = ad.Uint32()
		case unix.IFLA_ADDRESS:
			l.MAC = net.HardwareAddr(ad.Bytes())
		case unix.IFLA_LINKINFO:
			ad.Nested(func(info *raw.AttributeDecoder) error { return decodeKind(info, &l) })
		case unix.IFLA_AF_SPEC:
			ad.Nested(func(spec *raw.AttributeDecoder) error { return decodeFamilies(spec, &l) })
		}
	}
	if !l.ours() {
		l.Kind, l.Port = KindDevice, 0
	}
	return int(header.Index), l, ad.Err()
}

// decodeKind reads IFLA_LINKINFO. An overlay link without collect-metadata mode is none that we could use: it
// stays a device.
func decodeKind(ad *raw.AttributeDecoder, l *Link) error {
	kind := KindDevice
	for ad.Next() {
		switch ad.Type() {
		case unix.IFLA_INFO_KIND:
			kind = LinkKind(ad.String())
		case unix.IFLA_INFO_DATA:
			ad.Nested(func(data *raw.AttributeDecoder) error { return decodeOverlay(data, kind, l) })
		}
	}
	return ad.Err()
}

// decodeOverlay reads IFLA_INFO_DATA, of which each kind has its own numbers.
func decodeOverlay(ad *raw.AttributeDecoder, kind LinkKind, l *Link) error {
	var portAttr, metadataAttr uint16
	switch kind {
	case KindVXLAN:
		portAttr, metadataAttr = nl.IFLA_VXLAN_PORT, nl.IFLA_VXLAN_FLOWBASED
	case KindGeneve:
		portAttr, metadataAttr = nl.IFLA_GENEVE_PORT, nl.IFLA_GENEVE_COLLECT_METADATA
	default:
		return nil
	}
	var port uint16
	for ad.Next() {
		switch ad.Type() {
		case portAttr:
			port = binary.BigEndian.Uint16(ad.Bytes())
		case metadataAttr: // VXLAN: a byte, Geneve: there or not
			if value := ad.Bytes(); len(value) == 0 || value[0] != 0 {
				l.Kind = kind
			}
		}
	}
	if l.Kind == kind {
		l.Port = port
	}
	return ad.Err()
}
