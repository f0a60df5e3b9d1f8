package netops

import (
	"fmt"
	"net"
	"net/netip"

	raw "github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// skipStats is RTEXT_FILTER_SKIP_STATS of linux/rtnetlink.h: links without their counters.
const skipStats = 1 << 3

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
	if l.Remote.IsValid() {
		if err := k.route.setRemote(l, linkIndex); err != nil {
			return fmt.Errorf("set far end: %w", err)
		}
	}
	if err := k.route.configure(l, linkIndex); err != nil {
		return err
	}
	if l.Kind != KindDevice {
		if err := k.handle.LinkSetARPOff(handle); err != nil {
			return fmt.Errorf("set ARP off: %w", err)
		}
	}
	return k.handle.LinkSetUp(handle)
}

// links reads all links of the namespace, by index.
func (s *routeSocket) links() (map[int]Link, error) {
	request := message{
		kind:   unix.RTM_GETLINK,
		header: unix.IfInfomsg{},
		attrs:  func(ae *raw.AttributeEncoder) { ae.Uint32(unix.IFLA_EXT_MASK, skipStats) },
	}
	all, err := collect(s, request, func(data []byte) (indexedLink, bool, error) {
		l, err := decodeLink(data)
		return l, true, err
	})
	found := make(map[int]Link, len(all))
	for _, l := range all {
		found[l.index] = l.Link
	}
	return found, err
}

type indexedLink struct {
	Link
	index int
}

func decodeLink(data []byte) (l indexedLink, err error) {
	var header unix.IfInfomsg
	ad, err := split(data, &header)
	if err != nil {
		return l, err
	}
	l.index, l.Kind = int(header.Index), KindDevice
	l.Down, l.ARP = header.Flags&unix.IFF_UP == 0, header.Flags&unix.IFF_NOARP == 0
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
			ad.Nested(func(info *raw.AttributeDecoder) error { return decodeKind(info, &l.Link) })
		case unix.IFLA_AF_SPEC:
			ad.Nested(func(spec *raw.AttributeDecoder) error { return decodeFamilies(spec, &l.Link) })
		}
	}
	if !l.ours() {
		l.Kind, l.Port, l.VNI, l.Remote = KindDevice, 0, 0, netip.Addr{}
	}
	return l, ad.Err()
}
