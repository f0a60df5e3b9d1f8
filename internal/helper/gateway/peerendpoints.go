//go:build linux

package gateway

import (
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
)

// endpointLife is the life of an address in learned.
const endpointLife = 32 * records.MaxPeerEndpoints

// peerEndpoints are addresses of the server's nodes, which its gateways send in their echoes while the client uses the
// address of such a node. The client tries them in turn with those of its record. The server is authenticated, but not
// trusted: it may only send addresses, a bounded number, and none of the client's own cluster.
type peerEndpoints struct {
	learned
	used      bool           // this side is the client, and the user has not set the endpoint
	forbidden []netip.Prefix // reserved ranges, this cluster's, and those by which it reaches the peer
	hosts     []netip.Addr   // API servers, and this cluster's nodes, sorted
	private   bool           // packets without encryption must not go to other addresses
	known     []netip.Addr   // of an earlier process, as it recorded them
}

// update applies a new view, which determines the acceptable addresses.
func (p *peerEndpoints) update(v view) {
	p.used = v.peering.Role == records.Client && *v.peering.Settings.Complete().EndpointHost == ""
	f := v.fabric
	p.private = v.private()
	p.forbidden = slices.Concat(records.ReservedRanges, f.PodCIDRs, f.ServiceCIDRs, f.ExternalCIDRs, f.InternalCIDRs, v.peering.Seen())
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
	p.drop(func(a netip.Addr) bool { return !p.used || p.own(a) })
	for _, a := range p.known {
		p.learn(a)
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

// own reports whether an address cannot be one of the server's nodes, or must not be used.
func (p *peerEndpoints) own(a netip.Addr) bool {
	_, host := slices.BinarySearchFunc(p.hosts, a, netip.Addr.Compare)
	return host || p.private && cidr.Public(a) || cidr.Contains(p.forbidden, a)
}

// learn stores an address from the server, and reports whether it may be tried.
func (p *peerEndpoints) learn(a netip.Addr) bool {
	if !p.used || !a.IsValid() {
		return false
	}
	if !a.Is4() || p.own(a) {
		p.ignored.WithLabelValues("address of no endpoint").Inc()
		return false
	}
	p.age()
	return p.add(a)
}

// readKnownEndpoints reads the record of an earlier process, or pod, of the gateway.
func (l *loop) readKnownEndpoints() {
	g, _ := single[records.Gateway](l.location, l.Namespace, l.ID.Name()) // an unreadable record has none
	l.echoes.mu.Lock()
	defer l.echoes.mu.Unlock()
	l.echoes.endpoints.known = g.PeerEndpoints
}
