package netops

import (
	"encoding/binary"
	"errors"

	raw "github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Settings of a link that are else in /proc/sys/net/ipv4/conf, numbered as in linux/ip.h. By rtnetlink they need
// CAP_NET_ADMIN only: /proc/sys is read-only in an unprivileged container.
const (
	devconfForwarding         = 1
	devconfPromoteSecondaries = 20
	devconfSrcValidMark       = 24
)

// configure sets what IFLA_AF_SPEC can. A link of ours keeps an address when an older one of the same subnet goes
// (promote_secondaries), and gets no IPv6 address by itself: it would talk of it to every far end.
func (s *routeSocket) configure(l Link, linkIndex int) error {
	err := s.setFamily(linkIndex, unix.AF_INET, func(family *raw.AttributeEncoder) error {
		family.Nested(unix.IFLA_INET_CONF, func(conf *raw.AttributeEncoder) error {
			if l.Forwarding {
				conf.Uint32(devconfForwarding, 1)
			}
			if l.MarkedPath {
				conf.Uint32(devconfSrcValidMark, 1)
			}
			if l.ours() {
				conf.Uint32(devconfPromoteSecondaries, 1)
			}
			return nil
		})
		return nil
	})
	if err != nil || !l.ours() {
		return err
	}
	err = s.setFamily(linkIndex, unix.AF_INET6, func(family *raw.AttributeEncoder) error {
		family.Uint8(unix.IFLA_INET6_ADDR_GEN_MODE, nl.IN6_ADDR_GEN_MODE_NONE)
		return nil
	})
	if errors.Is(err, unix.EAFNOSUPPORT) { // neither kernel nor link has IPv6
		return nil
	}
	return err
}

// setFamily changes settings of one address family of a link.
func (s *routeSocket) setFamily(linkIndex int, family uint16, settings func(*raw.AttributeEncoder) error) error {
	return s.execute(message{
		kind:   unix.RTM_SETLINK,
		header: unix.IfInfomsg{Index: int32(linkIndex)},
		attrs: func(ae *raw.AttributeEncoder) {
			ae.Nested(unix.IFLA_AF_SPEC, func(spec *raw.AttributeEncoder) error {
				spec.Nested(family, settings)
				return nil
			})
		},
	})
}

// decodeFamilies reads IFLA_AF_SPEC. Other than in requests, IFLA_INET_CONF is an array there.
func decodeFamilies(ad *raw.AttributeDecoder, l *Link) error {
	for ad.Next() {
		family := ad.Type()
		ad.Nested(func(settings *raw.AttributeDecoder) error {
			for settings.Next() {
				switch {
				case family == unix.AF_INET && settings.Type() == unix.IFLA_INET_CONF:
					all := settings.Bytes()
					l.Forwarding = devconf(all, devconfForwarding) != 0
					l.MarkedPath = devconf(all, devconfSrcValidMark) != 0
				case family == unix.AF_INET6 && settings.Type() == unix.IFLA_INET6_ADDR_GEN_MODE:
					l.LinkLocal = settings.Uint8() != nl.IN6_ADDR_GEN_MODE_NONE
				}
			}
			return nil
		})
	}
	return ad.Err()
}

// devconf returns a setting from the array of all; they are numbered from 1.
func devconf(all []byte, setting int) uint32 {
	const size = 4
	if len(all) < setting*size {
		return 0
	}
	return binary.NativeEndian.Uint32(all[(setting-1)*size:])
}
