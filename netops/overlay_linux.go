package netops

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	raw "github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// overlayAttrs are the numbers of IFLA_INFO_DATA that each kind of overlay has for the same thing.
var overlayAttrs = map[LinkKind]struct{ id, remote, port, metadata uint16 }{
	KindVXLAN:  {nl.IFLA_VXLAN_ID, nl.IFLA_VXLAN_GROUP, nl.IFLA_VXLAN_PORT, nl.IFLA_VXLAN_FLOWBASED},
	KindGeneve: {nl.IFLA_GENEVE_ID, nl.IFLA_GENEVE_REMOTE, nl.IFLA_GENEVE_PORT, nl.IFLA_GENEVE_COLLECT_METADATA},
}

// createOverlay makes an overlay link. It is not up yet, and in its group from the first moment.
func (s *routeSocket) createOverlay(l Link) error {
	if _, ok := overlayAttrs[l.Kind]; !ok {
		return fmt.Errorf("no way to make a link of kind %q", l.Kind)
	}
	return s.execute(message{
		kind: unix.RTM_NEWLINK, flags: raw.Create | raw.Excl, header: unix.IfInfomsg{},
		attrs: func(ae *raw.AttributeEncoder) {
			ae.String(unix.IFLA_IFNAME, l.Name)
			if l.MAC != nil {
				ae.Bytes(unix.IFLA_ADDRESS, l.MAC)
			}
			if l.MTU != 0 {
				ae.Uint32(unix.IFLA_MTU, uint32(l.MTU))
			}
			ae.Uint32(unix.IFLA_GROUP, l.Group)
			ae.Nested(unix.IFLA_LINKINFO, l.info(l.overlay))
		},
	})
}

// setRemote leads the packets of an overlay with one far end to another underlay address, without a moment between.
func (s *routeSocket) setRemote(l Link, linkIndex int) error {
	remote := func(data *raw.AttributeEncoder) { data.Bytes(overlayAttrs[l.Kind].remote, l.Remote.AsSlice()) }
	return s.execute(message{
		kind: unix.RTM_NEWLINK, header: unix.IfInfomsg{Index: int32(linkIndex)},
		attrs: func(ae *raw.AttributeEncoder) { ae.Nested(unix.IFLA_LINKINFO, l.info(remote)) },
	})
}

// info encodes IFLA_LINKINFO.
func (l Link) info(data func(*raw.AttributeEncoder)) func(*raw.AttributeEncoder) error {
	return func(info *raw.AttributeEncoder) error {
		info.String(unix.IFLA_INFO_KIND, string(l.Kind))
		info.Nested(unix.IFLA_INFO_DATA, func(ae *raw.AttributeEncoder) error {
			data(ae)
			return nil
		})
		return nil
	}
}

// overlay encodes IFLA_INFO_DATA.
func (l Link) overlay(data *raw.AttributeEncoder) {
	attrs := overlayAttrs[l.Kind]
	data.Bytes(attrs.port, binary.BigEndian.AppendUint16(nil, l.Port))
	if l.Kind == KindVXLAN {
		data.Uint8(nl.IFLA_VXLAN_LEARNING, 0) // the far end is known
		data.Uint8(nl.IFLA_VXLAN_UDP_CSUM, 0) // Geneve's default; the inner packets have checksums
	}
	switch {
	case l.VNI == 0 && l.Kind == KindGeneve:
		data.Flag(attrs.metadata, true)
	case l.VNI == 0:
		data.Uint8(attrs.metadata, 1)
	default:
		data.Uint32(attrs.id, l.VNI)
		data.Bytes(attrs.remote, l.Remote.AsSlice())
	}
}

// decodeKind reads IFLA_LINKINFO. A link that is no overlay stays a device.
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

// decodeOverlay reads IFLA_INFO_DATA.
func decodeOverlay(ad *raw.AttributeDecoder, kind LinkKind, l *Link) error {
	attrs, ok := overlayAttrs[kind]
	if !ok {
		return nil
	}
	l.Kind = kind
	metadata := false
	for ad.Next() {
		switch ad.Type() {
		case attrs.id:
			l.VNI = ad.Uint32()
		case attrs.remote:
			l.Remote, _ = netip.AddrFromSlice(ad.Bytes())
		case attrs.port:
			l.Port = binary.BigEndian.Uint16(ad.Bytes())
		case attrs.metadata: // VXLAN: a byte, Geneve: there or not
			value := ad.Bytes()
			metadata = len(value) == 0 || value[0] != 0
		}
	}
	if metadata {
		l.VNI, l.Remote = 0, netip.Addr{}
	}
	return ad.Err()
}
