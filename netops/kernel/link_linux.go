package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/netops"
)

// Settings of a link in /proc/sys/net/ipv4/conf, numbered as in linux/ip.h. rtnetlink requires only CAP_NET_ADMIN for
// them; /proc/sys is read-only in an unprivileged container.
const (
	devconfForwarding         = 1
	devconfRPFilter           = 8
	devconfPromoteSecondaries = 20
	devconfSrcValidMark       = 24
)

// rpFilterLoose accepts a source to which there is any route. The kernel applies the larger of the settings of the link
// and of all links.
const rpFilterLoose = 2

// fields returns the attributes that all links have.
func linkFields(l *netops.Link) []field {
	return []field{
		optional(unix.IFLA_IFNAME, &l.Name),
		optional(unix.IFLA_MTU, &l.MTU),
		optional(unix.IFLA_GROUP, &l.Group),
		optional(unix.IFLA_ADDRESS, (*[]byte)(&l.MAC)),
	}
}

// setLink changes attributes of an existing link.
func (s *routeSocket) setLink(header unix.IfInfomsg, fields ...field) error {
	return s.execute(message{kind: unix.RTM_SETLINK, header: header, fields: fields})
}

// configureLink sets the desired attributes of an existing link and sets it up. It is set up last, because the kernel
// then assigns an IPv6 address.
//
// Our links keep an address when an older one of the same subnet is removed (promote_secondaries), and get no automatic
// IPv6 address: the kernel would announce it to all remote ends.
func (s *routeSocket) configureLink(l netops.Link, linkIndex int) error {
	link := unix.IfInfomsg{Index: int32(linkIndex)}
	if l.Remote.IsValid() {
		if err := s.setRemote(l, linkIndex); err != nil {
			return fmt.Errorf("set far end: %w", err)
		}
	}
	on, loose := uint32(1), uint32(rpFilterLoose)
	var settings []field
	for _, s := range []struct {
		wanted  bool
		setting field
	}{
		{l.Forwarding, optional(devconfForwarding, &on)},
		{l.MarkedPath, optional(devconfSrcValidMark, &on)},
		{l.LoosePath, optional(devconfRPFilter, &loose)},
		{l.Ours(), optional(devconfPromoteSecondaries, &on)},
	} {
		if s.wanted {
			settings = append(settings, s.setting)
		}
	}
	err := s.setLink(link, optional(unix.IFLA_GROUP, &l.Group), optional(unix.IFLA_MTU, &l.MTU), ofFamily(unix.AF_INET, optional(unix.IFLA_INET_CONF, settings)))
	if err != nil {
		return fmt.Errorf("set group, MTU and settings of IPv4: %w", err)
	}
	if l.Ours() {
		none := uint8(nl.IN6_ADDR_GEN_MODE_NONE)
		err := s.setLink(link, ofFamily(unix.AF_INET6, optional(unix.IFLA_INET6_ADDR_GEN_MODE, &none)))
		if err != nil && !errors.Is(err, unix.EAFNOSUPPORT) { // no IPv6 in kernel or link
			return fmt.Errorf("set settings of IPv6: %w", err)
		}
	}
	link.Flags = unix.IFF_UP
	if l.Kind != netops.KindDevice {
		link.Flags |= unix.IFF_NOARP
	}
	link.Change = link.Flags
	return s.setLink(link)
}

// ofFamily returns IFLA_AF_SPEC with a setting of one address family.
func ofFamily(family uint16, setting field) field {
	return optional(unix.IFLA_AF_SPEC, []field{optional(family, []field{setting})})
}

// links reads all links of the namespace, by index.
func (s *routeSocket) links() (map[int]netops.Link, error) {
	const skipStats = 1 << 3 // RTEXT_FILTER_SKIP_STATS of linux/rtnetlink.h: without counters
	mask := uint32(skipStats)
	request := message{kind: unix.RTM_GETLINK, header: unix.IfInfomsg{}, fields: []field{optional(unix.IFLA_EXT_MASK, &mask)}}
	all, err := collect(s, request, func(data []byte) (indexedLink, bool, error) {
		l, err := decodeLink(data)
		return l, true, err
	})
	found := make(map[int]netops.Link, len(all))
	for _, l := range all {
		found[l.index] = l.Link
	}
	return found, err
}

// linkIndex returns the index of a link, or ENODEV.
func (s *routeSocket) linkIndex(name string) (int, error) {
	replies, err := s.roundTrip(message{kind: unix.RTM_GETLINK, header: unix.IfInfomsg{}, fields: []field{optional(unix.IFLA_IFNAME, &name)}})
	var header unix.IfInfomsg
	if err == nil && len(replies) > 0 {
		err = unpack(replies[0].Data, &header)
	}
	if err != nil {
		return 0, fmt.Errorf("link %s: %w", name, err)
	}
	return int(header.Index), nil
}

type indexedLink struct {
	netops.Link
	index int
}

func decodeLink(data []byte) (l indexedLink, err error) {
	var header unix.IfInfomsg
	var overlay, settings []byte
	mode := uint8(nl.IN6_ADDR_GEN_MODE_NONE) // if the link has no IPv6
	err = unpack(data, &header, append(linkFields(&l.Link),
		optional(unix.IFLA_LINKINFO, []field{optional(unix.IFLA_INFO_KIND, (*string)(&l.Kind)), optional(unix.IFLA_INFO_DATA, &overlay)}),
		optional(unix.IFLA_AF_SPEC, []field{
			optional(unix.AF_INET, []field{optional(unix.IFLA_INET_CONF, &settings)}),
			optional(unix.AF_INET6, []field{optional(unix.IFLA_INET6_ADDR_GEN_MODE, &mode)}),
		}),
	)...)
	if err != nil {
		return l, err
	}
	l.index, l.Down, l.ARP = int(header.Index), header.Flags&unix.IFF_UP == 0, header.Flags&unix.IFF_NOARP == 0
	l.Forwarding, l.MarkedPath = devconf(settings, devconfForwarding) != 0, devconf(settings, devconfSrcValidMark) != 0
	l.LoosePath = devconf(settings, devconfRPFilter) == rpFilterLoose
	l.LinkLocal = mode != nl.IN6_ADDR_GEN_MODE_NONE
	return l, decodeOverlay(&l.Link, overlay)
}

// devconf returns one setting of the array that the kernel reports. Settings are numbered from 1.
func devconf(all []byte, setting int) uint32 {
	const size = 4
	if len(all) < setting*size {
		return 0
	}
	return binary.NativeEndian.Uint32(all[(setting-1)*size:])
}
