package cluster

import (
	"net/netip"

	"liqonet.io/liqonet/internal/cidr"
)

// widest is the length, in bits, to which a range that is inferred from those of nodes is widened. Clusters
// give their pods a /16 as a rule (kubeadm with flannel, k3s, kind, AKS), each node a /24 of it.
const widest = 16

// covering returns the longest prefix that contains all others. There must be at least one.
func covering(prefixes []netip.Prefix) netip.Prefix {
	p := prefixes[0].Masked()
	for _, q := range prefixes[1:] {
		for !cidr.Covers(p, q) {
			p = netip.PrefixFrom(p.Addr(), p.Bits()-1).Masked()
		}
	}
	return p
}

// widened returns p, or the widest range around it that is not wider than a /16 and overlaps none of taken.
func widened(p netip.Prefix, taken []netip.Prefix) netip.Prefix {
	for p.Bits() > widest {
		wider := netip.PrefixFrom(p.Addr(), p.Bits()-1).Masked()
		if cidr.Overlaps(wider, taken) {
			break
		}
		p = wider
	}
	return p
}
