package cluster

import (
	"net/netip"
	"slices"

	"go4.org/netipx"
)

// widest is the length, in bits, to which a range that is inferred from those of nodes is widened. Clusters
// give their pods a /16 as a rule (kubeadm with flannel, k3s, kind, AKS), each node a /24 of it.
const widest = 16

// merged returns the same addresses as the fewest prefixes, sorted.
func merged(prefixes []netip.Prefix) []netip.Prefix {
	var b netipx.IPSetBuilder
	for _, p := range prefixes {
		b.AddPrefix(p)
	}
	set, err := b.IPSet()
	if err != nil {
		return nil
	}
	return set.Prefixes()
}

// covering returns the longest prefix that contains all others. There must be at least one.
func covering(prefixes []netip.Prefix) netip.Prefix {
	p := prefixes[0].Masked()
	for _, q := range prefixes[1:] {
		for !within(p, q) {
			p = netip.PrefixFrom(p.Addr(), p.Bits()-1).Masked()
		}
	}
	return p
}

// widened returns p, or the widest range around it that is not wider than a /16 and overlaps none of taken.
func widened(p netip.Prefix, taken []netip.Prefix) netip.Prefix {
	for p.Bits() > widest {
		wider := netip.PrefixFrom(p.Addr(), p.Bits()-1).Masked()
		if overlaps(wider, taken) {
			break
		}
		p = wider
	}
	return p
}

// within reports whether all of inner lies in outer.
func within(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

func overlaps(p netip.Prefix, others []netip.Prefix) bool {
	return slices.ContainsFunc(others, p.Overlaps)
}

func contains(prefixes []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}

// hosts returns addresses as prefixes of full length.
func hosts(addresses []netip.Addr) []netip.Prefix {
	prefixes := make([]netip.Prefix, len(addresses))
	for i, a := range addresses {
		prefixes[i] = netip.PrefixFrom(a, a.BitLen())
	}
	return prefixes
}
