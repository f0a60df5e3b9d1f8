//go:build linux

package helper

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
)

// protected are addresses of the cluster itself. A route to a peer, or a guard, for one of them would divert it from
// the cluster: a record with such an address is rejected, independent of its writer.
type protected []protectedRange

type protectedRange struct {
	prefix netip.Prefix
	use    string // for messages
}

func (p *protected) add(use string, prefixes ...netip.Prefix) {
	for _, prefix := range prefixes {
		*p = append(*p, protectedRange{prefix, use})
	}
}

// conflict returns an error if a range overlaps a protected address; nil: none.
func (p protected) conflict(wanted netip.Prefix) error {
	for _, own := range p {
		if own.prefix.Overlaps(wanted) {
			return fmt.Errorf("%s conflicts with %s %s", wanted, own.use, own.prefix)
		}
	}
	return nil
}

// free returns the ranges without protected addresses, and the conflicts of the others.
func (p protected) free(wanted []netip.Prefix) (free []netip.Prefix, conflicts []error) {
	for _, w := range wanted {
		if err := p.conflict(w); err != nil {
			conflicts = append(conflicts, err)
			continue
		}
		free = append(free, w)
	}
	return free, conflicts
}

// hosts returns the addresses of the API server and of the node itself, independent of records.
func hosts(node *corev1.Node, apiServers []netip.Addr) protected {
	var p protected
	for _, a := range apiServers {
		p.add("API server", cidr.Single(a))
	}
	for _, address := range node.Status.Addresses {
		if a, err := netip.ParseAddr(address.Address); err == nil && a.Is4() {
			p.add("node address", cidr.Single(a))
		}
	}
	return p
}

// withPods adds the pods of the node.
func (p protected) withPods(pods localPods) protected {
	p = slices.Clone(p)
	p.add("pods of this node", pods.prefixes()...)
	return p
}

// withRanges adds the fabric's ranges of the cluster, without its internal CIDR, which nodes do route.
func (p protected) withRanges(f records.Fabric) protected {
	p = slices.Clone(p)
	p.add("pod CIDR", f.PodCIDRs...)
	p.add("service CIDR", f.ServiceCIDRs...)
	p.add("node network", f.NodeNetworks...)
	return p
}

// withFabric adds all ranges of the cluster.
func (p protected) withFabric(f records.Fabric) protected {
	p = p.withRanges(f)
	p.add("internal CIDR", f.InternalCIDR)
	p.add("external CIDR", f.ExternalCIDR)
	return p
}

// withoutPods adds the addresses of the cluster that no pod has. A network that pods and nodes share is not added:
// there the helper of each node protects its node's addresses.
func (p protected) withoutPods(f *records.Fabric) protected {
	p = slices.Clone(p)
	if f == nil {
		return p
	}
	p.add("service CIDR", f.ServiceCIDRs...)
	p.add("internal CIDR", f.InternalCIDR)
	p.add("external CIDR", f.ExternalCIDR)
	for _, network := range f.NodeNetworks {
		if network.IsSingleIP() || !cidr.Overlaps(network, f.PodCIDRs) {
			p.add("node network", network)
		}
	}
	return p
}

// checkFabric rejects a fabric with which the overlay would take foreign addresses.
func (p protected) checkFabric(f records.Fabric) error {
	if err := p.withRanges(f).conflict(f.InternalCIDR); err != nil {
		return fmt.Errorf("internal CIDR %w", err)
	}
	return nil
}

// checkPeering rejects a peering whose remapped addresses are the cluster's own.
func (p protected) checkPeering(peering records.Peering, f records.Fabric) error {
	own := p.withFabric(f)
	for _, seen := range peering.Seen() {
		if err := own.conflict(seen); err != nil {
			return err
		}
	}
	for _, g := range peering.Gateways {
		if !f.InternalCIDR.Contains(g.Address) || cidr.Lower(f.InternalCIDR).Contains(g.Address) {
			return fmt.Errorf("gateway address %s is not in the second half of the internal CIDR %s", g.Address, f.InternalCIDR)
		}
	}
	return nil
}
