package discover

import (
	"net/netip"

	"liqonet.io/liqonet/internal/cidr"
)

// widest is the prefix length to which an inferred range is widened. Most clusters use a /16 for pods (kubeadm with
// flannel, k3s, kind, AKS), and a /24 of it for each node.
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

// widened returns the widest range around p that is not wider than a /16 and overlaps none of taken; p if there is
// none.
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
