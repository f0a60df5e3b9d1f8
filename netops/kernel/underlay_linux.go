package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/echo"
)

// Path is the path from this namespace to a destination.
type Path struct {
	Source netip.Addr // source address of packets
	MTU    int        // bytes, of the link
}

// PathTo looks up the path to an address in the kernel.
func PathTo(dst netip.Addr) (Path, error) {
	routes, err := netlink.RouteGet(net.IP(dst.AsSlice()))
	if err != nil {
		return Path{}, fmt.Errorf("look up route to %s: %w", dst, err)
	}
	for _, r := range routes {
		source, ok := netip.AddrFromSlice(r.Src)
		if !ok || r.Type != unix.RTN_UNICAST {
			continue
		}
		link, err := netlink.LinkByIndex(r.LinkIndex)
		if err != nil {
			return Path{}, fmt.Errorf("look up link %d towards %s: %w", r.LinkIndex, dst, err)
		}
		return Path{Source: source.Unmap(), MTU: link.Attrs().MTU}, nil
	}
	return Path{}, fmt.Errorf("look up route to %s: no unicast route", dst)
}

// RouteBy returns the route from a node over one gateway, whether it is used or not.
func RouteBy(vni uint32) (echo.Route, error) {
	link, err := netlink.LinkByName(netops.NodeLink(vni))
	if err != nil {
		return echo.Route{}, fmt.Errorf("look up link %s: %w", netops.NodeLink(vni), err)
	}
	return echo.Route{Link: link.Attrs().Index, Mark: netops.MarkArrival}, nil
}

// SmallestMTU returns the size in bytes of the largest packet that fits all routes of the main table inside the ranges,
// such as the routes to the pods of each node over the network plugin's own tunnel. 0: there is no such route.
func (k *Kernel) SmallestMTU(within []netip.Prefix) (int, error) {
	links, err := k.route.links()
	if err != nil {
		return 0, fmt.Errorf("read links: %w", err)
	}
	sizes := make(map[string]int, len(links))
	for _, l := range links {
		sizes[l.Name] = l.MTU
	}
	routes, err := k.route.readRoutes(links, unix.RtMsg{Family: unix.AF_INET, Type: unix.RTN_UNICAST}, netops.MainTable)
	if err != nil {
		return 0, fmt.Errorf("read routes: %w", err)
	}
	smallest := 0
	for _, r := range routes {
		mtu := cmp.Or(r.MTU, sizes[r.Link])
		if cidr.Within(r.Dst, within) && mtu > 0 && (smallest == 0 || mtu < smallest) {
			smallest = mtu
		}
	}
	return smallest, nil
}

// probeName is the name of temporary links that test whether the kernel supports a kind.
const probeName = netops.Prefix + "probe"

// Supports reports whether the kernel supports links of a kind: "vxlan", "geneve", "wireguard". It creates a link and
// removes it, which is the only test that works for both built-in drivers and modules.
func Supports(kind string) (bool, error) {
	err := netlink.LinkAdd(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Name: probeName}, LinkType: kind})
	switch {
	case err == nil, errors.Is(err, unix.EEXIST): // EEXIST: left behind by a helper that was killed
		link, err := netlink.LinkByName(probeName)
		if err == nil {
			err = netlink.LinkDel(link)
		}
		if err != nil {
			return false, fmt.Errorf("remove link %s: %w", probeName, err)
		}
		return true, nil
	case errors.Is(err, unix.EINVAL): // the driver exists and requires parameters, as vxlan does
		return true, nil
	case errors.Is(err, unix.EOPNOTSUPP):
		return false, nil
	default:
		return false, fmt.Errorf("probe for links of kind %s: %w", kind, err)
	}
}
