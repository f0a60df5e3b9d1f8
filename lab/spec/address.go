package spec

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// APIPort is where API servers listen.
const APIPort = 6443

// Offsets in a cluster's node network. The router has the last host address.
const (
	controlPlaneOffset = 10
	firstNodeOffset    = 11
)

// Offsets in a cluster's service CIDR, as kubeadm has them.
const (
	apiServiceOffset = 1
	dnsServiceOffset = 10
)

// NodeName names the nth node, from 1.
func (c Cluster) NodeName(n int) string { return fmt.Sprintf("%s-%d", c.Name, n) }

// NodeAddress is the address of the nth node, from 1.
func (c Cluster) NodeAddress(n int) netip.Addr {
	return nth(c.NodeNetwork, firstNodeOffset+n-1)
}

// NodePodCIDR is the nth node's share of the pod CIDR, n from 1.
func (c Cluster) NodePodCIDR(n int) netip.Prefix {
	return netip.PrefixFrom(nth(c.PodCIDR, (n-1)<<(32-nodePodBits)), nodePodBits)
}

// ControlPlaneAddress is where the API server listens in the node network.
func (c Cluster) ControlPlaneAddress() netip.Addr { return nth(c.NodeNetwork, controlPlaneOffset) }

// RouterAddress is the node network's way out.
func (c Cluster) RouterAddress() netip.Addr { return nth(c.NodeNetwork, hosts(c.NodeNetwork)-2) }

// NodeAddresses are those of the nth node, from 1, the primary family's first.
func (c Cluster) NodeAddresses(n int) []netip.Addr {
	four := c.NodeAddress(n)
	return InFamilies(c, four, NodeNetwork6(four).Addr())
}

// ControlPlaneAddresses are where the API server listens, the primary family's first.
func (c Cluster) ControlPlaneAddresses() []netip.Addr {
	four := c.ControlPlaneAddress()
	return InFamilies(c, four, NodeNetwork6(four).Addr())
}

// APIService is the address of Service "kubernetes".
func (c Cluster) APIService() netip.Addr { return c.service(apiServiceOffset) }

// DNSService is the address of the name server in pods' resolv.conf. The lab runs no name server.
func (c Cluster) DNSService() netip.Addr { return c.service(dnsServiceOffset) }

// service is the address of the primary family at an offset in the range of Services.
func (c Cluster) service(offset int) netip.Addr {
	if c.primaryIPv6() {
		return service6(byte(offset))
	}
	return nth(c.ServiceCIDR, offset)
}

// MaxNodes is how many nodes the cluster's ranges have room for.
func (c Cluster) MaxNodes() int {
	shares := 1 << (nodePodBits - c.PodCIDR.Bits())
	if c.PodAddresses == Pool {
		shares /= 2 // the upper half is the pool
	}
	// Not for nodes: what precedes the first, the router and the broadcast address.
	return min(hosts(c.NodeNetwork)-firstNodeOffset-2, shares)
}

// hosts is the number of addresses in an IPv4 range.
func hosts(p netip.Prefix) int { return 1 << (32 - p.Bits()) }

// nth is the address at an offset in an IPv4 range.
func nth(p netip.Prefix, offset int) netip.Addr {
	base := p.Addr().As4()
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(base[:])+uint32(offset))
	return netip.AddrFrom4(b)
}
