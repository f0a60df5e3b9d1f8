package underlay

import (
	"fmt"
	"net"
	"net/netip"
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
	return ip(m.Namespace,
		fmt.Sprintf("link add %s address %s mtu %d type vxlan id %d dstport %d dev %s local %s nolearning",
			tunnelName, own.mac(), mtu, tunnelVNI, tunnelPort, uplink, own.Node),
		fmt.Sprintf("addr add %s dev %s", own.Address, tunnelName),
		"link set "+tunnelName+" up")
}

// RouteByTunnel makes the member reach another end of the tunnel, and ranges, such as that node's pods, behind it.
func (m Member) RouteByTunnel(ranges []netip.Prefix, far TunnelEnd) error {
	commands := []string{
		fmt.Sprintf("neigh replace %s lladdr %s dev %s nud permanent", far.Address, far.mac(), tunnelName),
		fmt.Sprintf("route replace %s via %s dev %s onlink", far.Address, far.Address, tunnelName),
	}
	for _, dst := range ranges {
		commands = append(commands, fmt.Sprintf("route replace %s via %s dev %s onlink", dst, far.Address, tunnelName))
	}
	if err := ip(m.Namespace, commands...); err != nil {
		return err
	}
	// Where that hardware address is.
	_, err := execute(m.Namespace, "",
		"bridge", "fdb", "replace", far.mac().String(), "dev", tunnelName, "dst", far.Node.String(), "self", "permanent")
	return err
}
