//go:build linux

package gateway

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/helper"
)

const (
	// peerNodeLife is how long an address from the peer is valid; peerNodesMost, how many this cluster's nodes get.
	peerNodeLife  = 10 * time.Second
	peerNodesMost = 8
	// peerNodesKept bounds the number of stored addresses from the peer: it sends fifty in a second.
	peerNodesKept = 128
)

// peerNodes are nodes of the peer that answer probes, from the peer's echoes.
type peerNodes struct {
	ignored *prometheus.CounterVec

	mu       sync.Mutex               // guards what follows
	external netip.Prefix             // of the peer, as this cluster reaches it
	named    map[netip.Addr]time.Time // time of the last echo with a node, by remapped address
	sent     []netip.Addr             // those that this cluster's nodes get
}

func newPeerNodes(m *helper.Metrics) *peerNodes {
	return &peerNodes{ignored: m.Ignored, named: map[netip.Addr]time.Time{}}
}

func (p *peerNodes) update(external netip.Prefix) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.external = external
}

// learn stores a node by its number, if the nodes' half of the peer's external CIDR has an address for it.
func (p *peerNodes) learn(number uint32) {
	if number == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	seen, ok := cidr.Nth(cidr.Lower(p.external), number)
	if !ok {
		p.ignored.WithLabelValues("number of no node").Inc()
		return
	}
	if _, known := p.named[seen]; !known && len(p.named) >= peerNodesKept {
		maps.DeleteFunc(p.named, func(_ netip.Addr, at time.Time) bool { return time.Since(at) > peerNodeLife })
		if len(p.named) >= peerNodesKept {
			p.ignored.WithLabelValues("too many addresses").Inc()
			return
		}
	}
	p.named[seen] = time.Now()
}

// current returns the addresses for this cluster's nodes to probe. A node whose address keeps arriving stays.
func (p *peerNodes) current() []netip.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	alive := func(a netip.Addr) bool { at, ok := p.named[a]; return ok && time.Since(at) < peerNodeLife }
	p.sent = slices.DeleteFunc(slices.Clone(p.sent), func(a netip.Addr) bool { return !alive(a) })
	for a := range p.named {
		if len(p.sent) < peerNodesMost && alive(a) && !slices.Contains(p.sent, a) {
			p.sent = append(p.sent, a)
		}
	}
	slices.SortFunc(p.sent, netip.Addr.Compare)
	return p.sent
}
