// Package underlay is the network below the clusters of a lab: a router namespace with one bridge a cluster,
// the namespaces of control planes and nodes attached to it, and one of a machine beyond it. Node networks route to
// each other; pod networks are known only inside their cluster, in whatever style it has.
package underlay

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/lab/netns"
	"liqonet.io/liqonet/lab/spec"
)

// uplink is the name, inside a member, of its link to the node network.
const uplink = "eth0"

// Underlay is the router, its bridges and the machine outside.
type Underlay struct {
	Router  *netns.Namespace
	Outside *netns.Namespace
	tables  map[string]int // the router's, for pods of clusters whose nodes do not hide them, by cluster
}

// Member is a namespace with an address in a node network.
type Member struct {
	Name      string // of its port on the bridge; at most 15 bytes
	Address   netip.Addr
	Namespace *netns.Namespace
}

// New makes the router with a bridge for every cluster, and the machine outside.
func New(s spec.Spec) (*Underlay, error) {
	router, err := netns.New()
	if err != nil {
		return nil, err
	}
	if err := loopbackUp(router); err != nil {
		return nil, err
	}
	if err := setSysctls(router, map[string]string{"net/ipv4/ip_forward": "1"}); err != nil {
		return nil, err
	}
	kernel, err := handle(router)
	if err != nil {
		return nil, err
	}
	defer kernel.Close()
	u := &Underlay{Router: router, tables: make(map[string]int)}
	if u.Outside, err = newOutside(kernel); err != nil {
		return nil, err
	}
	for _, c := range s.Clusters {
		bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridgeName(c), MTU: c.MTU}}
		if err := kernel.LinkAdd(bridge); err != nil {
			return nil, fmt.Errorf("add bridge %s: %w", bridge.Name, err)
		}
		if err := configure(kernel, bridge, netip.PrefixFrom(c.RouterAddress(), c.NodeNetwork.Bits())); err != nil {
			return nil, err
		}
		if c.HasIPv6() {
			if err := addIPv6(kernel, bridge, spec.NodeNetwork6(c.RouterAddress())); err != nil {
				return nil, err
			}
		}
		if !routesPods(c) {
			continue
		}
		if err := u.adopt(c); err != nil {
			return nil, err
		}
	}
	return u, nil
}

func bridgeName(c spec.Cluster) string { return "br-" + c.Name }

// Attach makes a namespace that is connected to the cluster's node network. A port that an earlier member of
// the same name left is replaced.
func (u *Underlay) Attach(c spec.Cluster, name string, address netip.Addr) (Member, error) {
	ns, err := netns.New()
	if err != nil {
		return Member{}, err
	}
	m := Member{Name: name, Address: address, Namespace: ns}
	if err := u.attach(c, m); err != nil {
		return Member{}, errors.Join(fmt.Errorf("attach %s: %w", name, err), ns.Close())
	}
	return m, nil
}

func (u *Underlay) attach(c spec.Cluster, m Member) error {
	if err := loopbackUp(m.Namespace); err != nil {
		return err
	}
	err := setSysctls(m.Namespace, map[string]string{
		"net/ipv4/ip_forward": "1",
		// Answers of a pod to its neighbour on the bridge must pass conntrack, where the Service's address is put back.
		"net/bridge/bridge-nf-call-iptables": "1",
	})
	if err != nil {
		return err
	}
	router, err := handle(u.Router)
	if err != nil {
		return err
	}
	defer router.Close()
	if old, err := router.LinkByName(m.Name); err == nil {
		if err := router.LinkDel(old); err != nil {
			return fmt.Errorf("delete port %s: %w", m.Name, err)
		}
	}
	bridge, err := router.LinkByName(bridgeName(c))
	if err != nil {
		return fmt.Errorf("find bridge %s: %w", bridgeName(c), err)
	}
	port := &netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: m.Name, MTU: c.MTU, MasterIndex: bridge.Attrs().Index, Flags: net.FlagUp},
		PeerName:      uplink,
		PeerMTU:       uint32(c.MTU),
		PeerNamespace: netlink.NsFd(m.Namespace.FD()),
	}
	if err := router.LinkAdd(port); err != nil {
		return fmt.Errorf("add port %s: %w", m.Name, err)
	}
	member, err := handle(m.Namespace)
	if err != nil {
		return err
	}
	defer member.Close()
	link, err := member.LinkByName(uplink)
	if err != nil {
		return fmt.Errorf("find link %s: %w", uplink, err)
	}
	if err := configure(member, link, netip.PrefixFrom(m.Address, c.NodeNetwork.Bits())); err != nil {
		return err
	}
	if err := m.route(member, netip.PrefixFrom(netip.IPv4Unspecified(), 0), c.RouterAddress()); err != nil || !c.HasIPv6() {
		return err
	}
	return m.joinIPv6(member, link, c)
}

// joinIPv6 gives the member an IPv6 address beside its other one. Its packets find no way beyond the router, but
// without a route there they would not meet kube-proxy's rules.
func (m Member) joinIPv6(kernel *netlink.Handle, link netlink.Link, c spec.Cluster) error {
	err := setSysctls(m.Namespace, map[string]string{"net/ipv6/conf/all/forwarding": "1", "net/bridge/bridge-nf-call-ip6tables": "1"})
	if err != nil {
		return err
	}
	if err := addIPv6(kernel, link, spec.NodeNetwork6(m.Address)); err != nil {
		return err
	}
	return m.route(kernel, netip.PrefixFrom(netip.IPv6Unspecified(), 0), spec.NodeNetwork6(c.RouterAddress()).Addr())
}

// addIPv6 gives a link an address that can be used at once.
func addIPv6(kernel *netlink.Handle, link netlink.Link, address netip.Prefix) error {
	if err := kernel.AddrAdd(link, &netlink.Addr{IPNet: ipNet(address), Flags: unix.IFA_F_NODAD}); err != nil {
		return fmt.Errorf("add address %s to %s: %w", address, link.Attrs().Name, err)
	}
	return nil
}

// Route makes the member reach ranges, such as another node's pods, by way of a neighbour.
func (m Member) Route(ranges []netip.Prefix, via netip.Addr) error {
	kernel, err := handle(m.Namespace)
	if err != nil {
		return err
	}
	defer kernel.Close()
	for _, dst := range ranges {
		if err := m.route(kernel, dst, via); err != nil {
			return err
		}
	}
	return nil
}

func (m Member) route(kernel *netlink.Handle, dst netip.Prefix, via netip.Addr) error {
	route := &netlink.Route{Dst: ipNet(dst), Gw: net.IP(via.AsSlice())}
	if err := kernel.RouteReplace(route); err != nil {
		return fmt.Errorf("add route to %s via %s: %w", dst, via, err)
	}
	return nil
}

// configure gives a link its address and brings it up.
func configure(kernel *netlink.Handle, link netlink.Link, address netip.Prefix) error {
	if err := kernel.AddrAdd(link, &netlink.Addr{IPNet: ipNet(address)}); err != nil {
		return fmt.Errorf("add address %s to %s: %w", address, link.Attrs().Name, err)
	}
	if err := kernel.LinkSetUp(link); err != nil {
		return fmt.Errorf("bring up %s: %w", link.Attrs().Name, err)
	}
	return nil
}

func loopbackUp(ns *netns.Namespace) error {
	kernel, err := handle(ns)
	if err != nil {
		return err
	}
	defer kernel.Close()
	lo, err := kernel.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find loopback: %w", err)
	}
	if err := kernel.LinkSetUp(lo); err != nil {
		return fmt.Errorf("bring up loopback: %w", err)
	}
	return nil
}

// setSysctls writes sysctls, by their path below /proc/sys, inside the namespace.
func setSysctls(ns *netns.Namespace, values map[string]string) error {
	return ns.Do(func() error {
		for key, value := range values {
			if err := os.WriteFile("/proc/sys/"+key, []byte(value), 0); err != nil {
				return fmt.Errorf("set sysctl: %w", err)
			}
		}
		return nil
	})
}

func handle(ns *netns.Namespace) (*netlink.Handle, error) {
	h, err := netlink.NewHandleAt(ns.Handle())
	if err != nil {
		return nil, fmt.Errorf("open netlink socket: %w", err)
	}
	return h, nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: net.IP(p.Addr().AsSlice()), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
