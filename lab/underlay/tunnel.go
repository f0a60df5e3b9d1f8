package underlay

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The tunnel that carries pods' packets between nodes, with flannel's numbers.
const (
	tunnelName = "lab.1"
	tunnelVNI  = 1
	tunnelPort = 8472 // UDP
)

// TunnelEnd is a node as the other nodes' tunnels know it.
type TunnelEnd struct {
	Node    netip.Addr // in the node network
	Address netip.Addr // in the tunnel
}

// mac returns the hardware address of the end, computed from its node's address: all nodes can compute it.
func (e TunnelEnd) mac() net.HardwareAddr {
	a := e.Node.As4()
	return net.HardwareAddr{0x02, 0x6c, a[0], a[1], a[2], a[3]}
}

// AddTunnel makes the member's end of the tunnel. mtu is that of the packets inside, in bytes.
func (m Member) AddTunnel(own TunnelEnd, mtu int) error {
	kernel, err := handle(m.Namespace)
	if err != nil {
		return err
	}
	defer kernel.Close()
	uplink, err := kernel.LinkByName(uplink)
	if err != nil {
		return fmt.Errorf("find the tunnel's uplink: %w", err)
	}
	device := &netlink.Vxlan{
		LinkAttrs:    netlink.LinkAttrs{Name: tunnelName, MTU: mtu, HardwareAddr: own.mac()},
		VxlanId:      tunnelVNI,
		VtepDevIndex: uplink.Attrs().Index,
		SrcAddr:      net.IP(own.Node.AsSlice()),
		Port:         tunnelPort,
	}
	if err := kernel.LinkAdd(device); err != nil {
		return fmt.Errorf("add tunnel %s: %w", tunnelName, err)
	}
	return configure(kernel, device, netip.PrefixFrom(own.Address, own.Address.BitLen()))
}

// RouteByTunnel makes the member reach another end of the tunnel, and ranges, such as that node's pods, behind it.
func (m Member) RouteByTunnel(ranges []netip.Prefix, far TunnelEnd) error {
	kernel, err := handle(m.Namespace)
	if err != nil {
		return err
	}
	defer kernel.Close()
	device, err := kernel.LinkByName(tunnelName)
	if err != nil {
		return fmt.Errorf("find tunnel %s: %w", tunnelName, err)
	}
	index := device.Attrs().Index
	for _, n := range []*netlink.Neigh{
		{Family: unix.AF_INET, IP: net.IP(far.Address.AsSlice())},
		// Where that hardware address is.
		{Family: unix.AF_BRIDGE, Flags: netlink.NTF_SELF, IP: net.IP(far.Node.AsSlice())},
	} {
		n.LinkIndex, n.State, n.HardwareAddr = index, netlink.NUD_PERMANENT, far.mac()
		if err := kernel.NeighSet(n); err != nil {
			return fmt.Errorf("add tunnel end %s at %s: %w", far.Address, far.Node, err)
		}
	}
	for _, dst := range append([]netip.Prefix{netip.PrefixFrom(far.Address, far.Address.BitLen())}, ranges...) {
		route := &netlink.Route{
			Dst: ipNet(dst), Gw: net.IP(far.Address.AsSlice()), LinkIndex: index, Flags: int(netlink.FLAG_ONLINK),
		}
		if err := kernel.RouteReplace(route); err != nil {
			return fmt.Errorf("add route to %s by tunnel end %s: %w", dst, far.Address, err)
		}
	}
	return nil
}
