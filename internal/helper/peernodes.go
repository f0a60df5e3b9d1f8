//go:build linux

package helper

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
)

const (
	// peerNodeLife is how long an address that the peer named is good; peerNodesMost, how many nodes are told.
	peerNodeLife  = 10 * time.Second
	peerNodesMost = 8
	// peerNodesKept bounds how many addresses that the peer named are remembered: it names fifty in a second.
	peerNodesKept = 128
)

// peerNodes are nodes of the peer that answer probes, as the peer names them in its echoes.
type peerNodes struct {
	ignored *prometheus.CounterVec

	mu       sync.Mutex               // guards what follows
	external records.Mapping          // of the peer
	named    map[netip.Addr]time.Time // by address as seen here: when they were named last
	told     []netip.Addr             // those of them that this cluster's nodes are told
}

func newPeerNodes(m *metrics) *peerNodes {
	return &peerNodes{ignored: m.ignored, named: map[netip.Addr]time.Time{}}
}

func (p *peerNodes) follow(external records.Mapping) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.external = external
}

// learn notes a node, if the peer may name it: an address of the nodes' half of its external CIDR.
func (p *peerNodes) learn(real netip.Addr) {
	if !real.IsValid() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !cidr.Lower(p.external.Real).Contains(real) {
		p.ignored.WithLabelValues("address of no node").Inc()
		return
	}
	seen := cidr.Swap(real, cidr.Lower(p.external.Seen))
	if _, known := p.named[seen]; !known && len(p.named) >= peerNodesKept {
		maps.DeleteFunc(p.named, func(_ netip.Addr, at time.Time) bool { return time.Since(at) > peerNodeLife })
		if len(p.named) >= peerNodesKept {
			p.ignored.WithLabelValues("too many addresses").Inc()
			return
		}
	}
	p.named[seen] = time.Now()
}

// current returns those for this cluster's nodes to probe. One that goes on being named stays.
func (p *peerNodes) current() []netip.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	alive := func(a netip.Addr) bool { at, ok := p.named[a]; return ok && time.Since(at) < peerNodeLife }
	p.told = slices.DeleteFunc(slices.Clone(p.told), func(a netip.Addr) bool { return !alive(a) })
	for a := range p.named {
		if len(p.told) < peerNodesMost && alive(a) && !slices.Contains(p.told, a) {
			p.told = append(p.told, a)
		}
	}
	slices.SortFunc(p.told, netip.Addr.Compare)
	return p.told
}
