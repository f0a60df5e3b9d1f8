package kernel

import (
	"fmt"
	"net/netip"

	raw "github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/netops"
)

// overlayAttrs are the attribute numbers in IFLA_INFO_DATA for each kind of overlay.
var overlayAttrs = map[netops.LinkKind]struct{ id, remote, port, metadata uint16 }{
	netops.KindVXLAN:  {nl.IFLA_VXLAN_ID, nl.IFLA_VXLAN_GROUP, nl.IFLA_VXLAN_PORT, nl.IFLA_VXLAN_FLOWBASED},
	netops.KindGeneve: {nl.IFLA_GENEVE_ID, nl.IFLA_GENEVE_REMOTE, nl.IFLA_GENEVE_PORT, nl.IFLA_GENEVE_COLLECT_METADATA},
}

// overlay returns the fields of IFLA_INFO_DATA. metadata is the attribute of collect-metadata mode: a byte for VXLAN,
// for Geneve an attribute without content.
func overlayFields(l *netops.Link, metadata *[]byte) []field {
	attrs := overlayAttrs[l.Kind]
	all := []field{
		optional(attrs.port, &l.Port), optional(attrs.id, &l.VNI), optional(attrs.remote, &l.Remote), optional(attrs.metadata, metadata),
	}
	if l.Kind == netops.KindVXLAN {
		off := uint8(0)
		all = append(all,
			required(nl.IFLA_VXLAN_LEARNING, &off), // the remote end is known
			required(nl.IFLA_VXLAN_UDP_CSUM, &off)) // Geneve's default; the inner packets have checksums
	}
	return all
}

// info returns IFLA_LINKINFO of an overlay.
func linkInfo(l *netops.Link, data ...field) field {
	return optional(unix.IFLA_LINKINFO, []field{optional(unix.IFLA_INFO_KIND, (*string)(&l.Kind)), optional(unix.IFLA_INFO_DATA, data)})
}

// createOverlay creates an overlay link. It is down, and in its group from the start.
func (s *routeSocket) createOverlay(l netops.Link) error {
	if _, ok := overlayAttrs[l.Kind]; !ok {
		return fmt.Errorf("no way to make a link of kind %q", l.Kind)
	}
	var metadata []byte
	switch {
	case l.VNI == 0 && l.Kind == netops.KindGeneve:
		metadata = []byte{}
	case l.VNI == 0:
		metadata = []byte{1}
	}
	fields := append(linkFields(&l), linkInfo(&l, overlayFields(&l, &metadata)...))
	return s.execute(changing(netops.Add, unix.RTM_NEWLINK, raw.Excl, unix.IfInfomsg{}, fields...))
}

// setRemote changes the underlay address of the remote end of an overlay link, without interruption.
func (s *routeSocket) setRemote(l netops.Link, linkIndex int) error {
	remote := linkInfo(&l, optional(overlayAttrs[l.Kind].remote, &l.Remote))
	return s.execute(message{kind: unix.RTM_NEWLINK, header: unix.IfInfomsg{Index: int32(linkIndex)}, fields: []field{remote}})
}

// decodeOverlay reads IFLA_INFO_DATA of a link with known kind. Links that are not our overlays are devices.
func decodeOverlay(l *netops.Link, data []byte) error {
	if _, ok := overlayAttrs[l.Kind]; !ok || !l.Ours() {
		l.Kind = netops.KindDevice
		return nil
	}
	ad, err := raw.NewAttributeDecoder(data)
	if err != nil {
		return err
	}
	var metadata []byte
	err = decode(ad, overlayFields(l, &metadata))
	if metadata != nil && (len(metadata) == 0 || metadata[0] != 0) {
		l.VNI, l.Remote = 0, netip.Addr{}
	}
	return err
}
