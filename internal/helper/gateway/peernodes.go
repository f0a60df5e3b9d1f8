//go:build linux

package gateway

import (
	"net/netip"

	"liqonet.io/liqonet/internal/cidr"
)

const (
	// peerNodesMost is the maximum number of the peer's nodes that this cluster's nodes get.
	peerNodesMost = 2 * sentMost
	// peerNodeLife is the life of a node in learned: a gateway of the peer sends ten messages in a second, or fifty if
	// there are several.
	peerNodeLife = 12 * sentMost
)

// peerNodes are nodes of the peer that answer probes, from the peer's echoes. This cluster's nodes probe them.
type peerNodes struct {
	learned
	external netip.Prefix // of the peer, as this cluster reaches it
}

func (p *peerNodes) update(external netip.Prefix) {
	p.external = external
	p.drop(func(a netip.Addr) bool { return !cidr.Lower(external).Contains(a) })
}

// learn stores a node by its number, if the nodes' half of the peer's external CIDR has an address for it. 0: the
// peer's gateway reaches no node.
func (p *peerNodes) learn(number uint32) {
	p.age()
	if number == 0 {
		return
	}
	seen, ok := cidr.Nth(cidr.Lower(p.external), number)
	if !ok {
		p.ignored.WithLabelValues("number of no node").Inc()
		return
	}
	p.add(seen)
}
