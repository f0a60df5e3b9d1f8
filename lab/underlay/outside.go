package underlay

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"

	"liqonet.io/liqonet/lab/netns"
	"liqonet.io/liqonet/lab/spec"
)

// outsidePort is the router's link to the machine outside.
const outsidePort = "outside"

// newOutside makes a machine beyond the router, in no cluster's node network. Nodes reach it by the router.
func newOutside(router *netlink.Handle) (*netns.Namespace, error) {
	ns, err := netns.New()
	if err != nil {
		return nil, err
	}
	if err := connectOutside(router, ns); err != nil {
		return nil, errors.Join(fmt.Errorf("attach the machine outside: %w", err), ns.Close())
	}
	return ns, nil
}

func connectOutside(router *netlink.Handle, ns *netns.Namespace) error {
	if err := loopbackUp(ns); err != nil {
		return err
	}
	port := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: outsidePort, Flags: net.FlagUp}, PeerName: uplink, PeerNamespace: netlink.NsFd(ns.FD()),
	}
	if err := router.LinkAdd(port); err != nil {
		return fmt.Errorf("add port %s: %w", outsidePort, err)
	}
	bits := spec.OutsideNetwork.Bits()
	if err := configure(router, port, netip.PrefixFrom(spec.OutsideRouter(), bits)); err != nil {
		return err
	}
	kernel, err := handle(ns)
	if err != nil {
		return err
	}
	defer kernel.Close()
	link, err := kernel.LinkByName(uplink)
	if err != nil {
		return fmt.Errorf("find link %s: %w", uplink, err)
	}
	for _, a := range spec.OutsideHosts() {
		if err := configure(kernel, link, netip.PrefixFrom(a, bits)); err != nil {
			return err
		}
	}
	return Member{Name: outsidePort, Namespace: ns}.route(kernel, netip.PrefixFrom(netip.IPv4Unspecified(), 0), spec.OutsideRouter())
}
