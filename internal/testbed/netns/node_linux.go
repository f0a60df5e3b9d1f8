package netns

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// Link makes a link, which is up, between two namespaces. The MTU is in bytes; 0 is the default.
func (ns Namespace) Link(name string, to Namespace, far string, mtu int) {
	ns.t.Helper()
	size := ""
	if mtu > 0 {
		size = fmt.Sprintf(" mtu %d", mtu)
	}
	ns.IP(
		fmt.Sprintf("link add %s%s type veth peer name %s%s netns %s", name, size, far, size, to.Path()),
		"link set "+name+" up",
	)
	to.IP("link set " + far + " up")
}

// Node is a node with a bridge that joins its pods, as a simple network plugin configures it.
type Node struct {
	Namespace
	Pods netip.Prefix // of 24 bits; the bridge has the first address
	MTU  int          // of its links, in bytes; 0: the default
}

// NewNode makes a node without a link to others.
func NewNode(t testing.TB, pods netip.Prefix, mtu int) Node {
	t.Helper()
	n := Node{New(t), pods, mtu}
	size, a := "", pods.Addr().As4()
	if mtu > 0 {
		size = fmt.Sprintf(" mtu %d", mtu)
	}
	n.IP(
		// An address of its own: otherwise it would take that of a later port, unknown to pods.
		fmt.Sprintf("link add cni0 address 02:00:%02x:%02x:%02x:01%s type bridge", a[0], a[1], a[2], size),
		"link set cni0 up",
		fmt.Sprintf("addr add %s/24 dev cni0", n.Bridge()),
	)
	n.Run("sysctl", "-qw", "net.ipv4.ip_forward=1")
	return n
}

// Bridge returns the address of the node for its pods.
func (n Node) Bridge() netip.Addr { return n.Pods.Addr().Next() }

// Uplink connects the node by its eth0 with a bridge of a router, which is the next hop to other networks.
func (n Node) Uplink(router Namespace, port, bridge string, address netip.Prefix, next netip.Addr) {
	n.t.Helper()
	n.Link("eth0", router, port, n.MTU)
	router.IP("link set " + port + " master " + bridge)
	n.IP(fmt.Sprintf("addr add %s dev eth0", address), fmt.Sprintf("route add default via %s", next))
}

// Masquerade gives packets of pods to others than the near ranges the node's address, instead of an earlier Masquerade.
func (n Node) Masquerade(priority int, pods, near []netip.Prefix) {
	n.t.Helper()
	set := func(of []netip.Prefix) string {
		return "{ " + strings.Trim(strings.ReplaceAll(fmt.Sprint(of), " ", ", "), "[]") + " }"
	}
	n.NFT("table ip cni", "delete table ip cni")
	n.Chain("cni", "post", fmt.Sprintf("nat hook postrouting priority %d", priority),
		fmt.Sprintf("ip saddr %s ip daddr != %s masquerade", set(pods), set(near)))
}

// Pod makes a pod with an address. The port is the name of its link on the node.
func (n Node) Pod(port string, address netip.Addr) Namespace {
	n.t.Helper()
	p := New(n.t)
	n.Link(port, p, "eth0", n.MTU)
	n.IP("link set "+port+" master cni0", "link set "+port+" type bridge_slave hairpin on")
	p.IP(fmt.Sprintf("addr add %s/24 dev eth0", address), fmt.Sprintf("route add default via %s", n.Bridge()))
	return p
}

// RoutedPod makes a pod with any address, as Calico does: with a route of the node to it, and proxy ARP.
func (n Node) RoutedPod(port string, address netip.Addr) Namespace {
	n.t.Helper()
	p := New(n.t)
	n.Link(port, p, "eth0", n.MTU)
	n.IP(fmt.Sprintf("route add %s dev %s", address, port))
	n.Run("sysctl", "-qw", "net.ipv4.conf."+port+".proxy_arp=1", "net.ipv4.neigh."+port+".proxy_delay=0")
	p.IP(
		fmt.Sprintf("addr add %s/32 dev eth0", address),
		"route add 169.254.1.1 dev eth0 scope link",
		"route add default via 169.254.1.1",
	)
	return p
}
