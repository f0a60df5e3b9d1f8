//go:build linux

package gateway

import (
	"maps"
	"net/netip"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/helper/cache"
	"liqonet.io/liqonet/internal/records"
)

const (
	// endpointsMost is the maximum number of nodes that a server sends, and of addresses that a client accepts.
	endpointsMost = records.MaxPeerEndpoints
	// endpointLife is the number of received addresses after which an address that was not among them expires. This
	// counts addresses, not time: a silent tunnel needs the addresses that were received last.
	endpointLife = 32 * endpointsMost
)

// peerEndpoints are addresses of the server's nodes, which its gateways send in their echoes while the client uses the
// address of such a node. The client tries them in turn with those of its record. The server is authenticated, but not
// trusted: it may only send addresses, a bounded number, and none of the client's own cluster.
type peerEndpoints struct {
	ignored *prometheus.CounterVec

	mu        sync.Mutex         // guards what follows
	used      bool               // this side is the client, and the user has not set the endpoint
	forbidden []netip.Prefix     // reserved ranges, this cluster's, and those by which it reaches the peer
	hosts     []netip.Addr       // API servers, and this cluster's nodes, sorted
	known     []netip.Addr       // of an earlier process
	names     int                // number of received addresses
	named     map[netip.Addr]int // number of the latest message with each address
}

func newPeerEndpoints(m *helper.Metrics) *peerEndpoints {
	return &peerEndpoints{ignored: m.Ignored, named: map[netip.Addr]int{}}
}

// update applies a new view, which determines the acceptable addresses.
func (p *peerEndpoints) update(v view) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used = v.peering.Role == records.Client && *v.peering.Settings.Complete().EndpointHost == ""
	f := v.fabric
	p.forbidden = slices.Concat(records.ReservedRanges, f.PodCIDRs, f.ServiceCIDRs, []netip.Prefix{f.ExternalCIDR, f.InternalCIDR}, v.peering.Seen())
	for _, network := range f.NodeNetworks {
		if !v.entersBy(network) {
			p.forbidden = append(p.forbidden, network)
		}
	}
	p.hosts = slices.Clone(v.apiServers)
	for _, n := range v.nodes {
		p.hosts = append(p.hosts, n.Address, n.OverlaySources[v.id])
	}
	slices.SortFunc(p.hosts, netip.Addr.Compare)
	maps.DeleteFunc(p.named, func(a netip.Addr, _ int) bool { return p.own(a) })
	for _, a := range p.known {
		p.add(a)
	}
	p.known = nil
}

// entersBy reports whether an endpoint of the record is in a network. Node networks are /24 around each node: if both
// clusters have nodes in one, it does not determine the owner of an address.
func (v view) entersBy(network netip.Prefix) bool {
	return slices.ContainsFunc(v.own().Tunnels, func(t records.Tunnel) bool {
		return slices.ContainsFunc(t.Endpoints, func(e string) bool {
			a, err := netip.ParseAddrPort(e)
			return err == nil && network.Contains(a.Addr())
		})
	})
}

// own reports whether an address cannot be one of the server's nodes; p.mu is held.
func (p *peerEndpoints) own(a netip.Addr) bool {
	_, host := slices.BinarySearchFunc(p.hosts, a, netip.Addr.Compare)
	return host || cidr.Contains(p.forbidden, a)
}

// setKnown sets the addresses that an earlier process has recorded.
func (p *peerEndpoints) setKnown(known []netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = known
}

// learn stores an address from the server, and reports whether it may be tried.
func (p *peerEndpoints) learn(a netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.add(a)
}

// add is learn; p.mu is held.
func (p *peerEndpoints) add(a netip.Addr) bool {
	if !p.used || !a.IsValid() {
		return false
	}
	if !a.Is4() || p.own(a) {
		p.ignored.WithLabelValues("address of no endpoint").Inc()
		return false
	}
	p.names++
	maps.DeleteFunc(p.named, func(_ netip.Addr, at int) bool { return p.names-at > endpointLife })
	if _, known := p.named[a]; !known && len(p.named) >= endpointsMost {
		p.ignored.WithLabelValues("too many endpoints").Inc()
		return false
	}
	p.named[a] = p.names
	return true
}

// asks reports whether the client requests other endpoints.
func (p *peerEndpoints) asks() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// current returns the addresses to try, sorted.
func (p *peerEndpoints) current() []netip.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.used {
		return nil
	}
	return slices.SortedFunc(maps.Keys(p.named), netip.Addr.Compare)
}

// readKnownEndpoints reads the record of an earlier process, or pod, of the gateway.
func (l *loop) readKnownEndpoints() {
	if cm := l.ownLocation(); cm != nil {
		g, _ := cache.Record[records.Gateway](cm) // an unreadable record has none
		l.echoes.endpoints.setKnown(g.PeerEndpoints)
	}
}
