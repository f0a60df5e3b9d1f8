package spec

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Family is an IP family.
type Family string

// The families.
const (
	IPv4 Family = "IPv4"
	IPv6 Family = "IPv6"
)

// IPv6 of a cluster stays in it: nodes and pods have addresses of these ranges, which are the same in each cluster, and
// the router forwards none.
var (
	nodeNetwork6 = netip.MustParsePrefix("fd00:172::/64") // the interface identifier is the IPv4 address
	podCIDR6     = netip.MustParsePrefix("fd00:244::/48") // the nth node has the nth /64
	serviceCIDR6 = netip.MustParsePrefix("fd00:96::/112")
)

// HasIPv6 reports whether nodes, pods and Services of the cluster have IPv6 addresses.
func (c Cluster) HasIPv6() bool { return slices.Contains(c.IPFamilies, IPv6) }

// primaryIPv6 reports whether an object with one address has one of IPv6.
func (c Cluster) primaryIPv6() bool { return len(c.IPFamilies) > 0 && c.IPFamilies[0] == IPv6 }

// InFamilies are what the cluster has of a thing that has an address or a range of each family, the primary family's
// first.
func InFamilies[T any](c Cluster, four, six T) []T {
	switch {
	case !c.HasIPv6():
		return []T{four}
	case !slices.Contains(c.IPFamilies, IPv4):
		return []T{six}
	case c.primaryIPv6():
		return []T{six, four}
	}
	return []T{four, six}
}

// ServiceCIDRs are the ranges of Services.
func (c Cluster) ServiceCIDRs() []netip.Prefix { return InFamilies(c, c.ServiceCIDR, serviceCIDR6) }

// PodCIDRs are the ranges of pods.
func (c Cluster) PodCIDRs() []netip.Prefix { return InFamilies(c, c.PodCIDR, podCIDR6) }

// NodePodCIDRs are the nth node's shares of the ranges of pods, n from 1.
func (c Cluster) NodePodCIDRs(n int) []netip.Prefix {
	return InFamilies(c, c.NodePodCIDR(n), NodePodCIDR6(n))
}

// NodePodCIDR6 is the IPv6 range of the nth node's pods, n from 1.
func NodePodCIDR6(n int) netip.Prefix {
	a := podCIDR6.Addr().As16()
	a[6], a[7] = byte(n>>8), byte(n)
	return netip.PrefixFrom(netip.AddrFrom16(a), 64)
}

// NodeNetwork6 is the IPv6 address, in the network of nodes, of a node, a control plane or the router with that IPv4
// address.
func NodeNetwork6(four netip.Addr) netip.Prefix {
	return netip.PrefixFrom(joined(nodeNetwork6.Addr(), four), nodeNetwork6.Bits())
}

// joined is an IPv6 address that ends with an IPv4 address.
func joined(six, four netip.Addr) netip.Addr {
	a, end := six.As16(), four.As4()
	copy(a[12:], end[:])
	return netip.AddrFrom16(a)
}

// service6 is the address of a Service at an offset.
func service6(offset byte) netip.Addr {
	a := serviceCIDR6.Addr().As16()
	a[15] = offset
	return netip.AddrFrom16(a)
}

func (c Cluster) familyProblems() []error {
	var errs []error
	for i, f := range c.IPFamilies {
		if f != IPv4 && f != IPv6 || slices.Contains(c.IPFamilies[:i], f) {
			errs = append(errs, fmt.Errorf("ipFamilies %s: want IPv4, IPv6 or both, the primary one first", c.IPFamilies))
		}
	}
	if c.HasIPv6() && c.NetworkPlugin != PluginLab {
		errs = append(errs, fmt.Errorf("ipFamilies %s: only the lab's own network has IPv6", c.IPFamilies))
	}
	if c.HasIPv6() && !slices.Contains(c.IPFamilies, IPv4) && !c.ControlPlaneOnly {
		errs = append(errs, errors.New("ipFamilies [IPv6]: nodes need IPv4, too; a control plane alone does not"))
	}
	return errs
}
