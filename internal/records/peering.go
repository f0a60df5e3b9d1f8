package records

import (
	"net/netip"
	"slices"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/wireguard"
)

// Role is a cluster's part in a peering's tunnel.
type Role string

// The roles. The server listens at an address that the client can reach; the client initiates.
const (
	Server Role = "server"
	Client Role = "client"
)

// Peering is the configuration of one peering for the helpers of this cluster: ConfigMap "peering-NAME".
type Peering struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	// Number is that of the peering in this cluster, from 1 to MaxPeerings, as it is reserved.
	Number int  `json:"number"`
	Role   Role `json:"role"`
	Peer   Peer `json:"peer"`
	// Local has the ranges of this cluster as the peer reaches them. The zero value: not known.
	Local Local `json:"local,omitzero"`
	// Gateways are the gateways of this cluster, 1 to MaxGateways. The gateway with number n has index n-1.
	Gateways []LocalGateway `json:"gateways"`
	// Settings are the user's, without those that have the default.
	Settings GatewaySettings `json:"settings,omitzero"`
	// MTU is the size in bytes of the largest inner IP packet that crosses the whole path unfragmented.
	MTU int `json:"mtu"`
	// Exposed are hosts outside this cluster that the peer may reach, at most MaxExposed, sorted by host.
	Exposed []Exposed `json:"exposed,omitempty"`
}

// Bounds of a peering.
const (
	MaxExposed  = 256 // hosts that it can expose
	MaxGateways = 8   // per cluster, so at most 64 tunnels
)

// Seen returns the ranges by which this cluster reaches the peer's pods, nodes and hosts.
func (p Peering) Seen() []netip.Prefix {
	all := p.Peer.CIDRs()
	seen := make([]netip.Prefix, len(all))
	for i, m := range all {
		seen[i] = m.Seen
	}
	return seen
}

// GatewayIDs returns the IDs of this cluster's gateways.
func (p Peering) GatewayIDs() []GatewayID { return GatewayIDs(p.Name, len(p.Gateways)) }

// Tunnel returns the local end of the tunnel between two gateways, given by number, and false if it does not exist.
func (p Peering) Tunnel(own, peer int) (Tunnel, bool) {
	if own > len(p.Gateways) || peer > len(p.Gateways[own-1].Tunnels) {
		return Tunnel{}, false
	}
	return p.Gateways[own-1].Tunnels[peer-1], true
}

// TunnelAddresses returns the addresses of the tunnel between two gateways, given by number: of the local end, with the
// prefix length of the link's range, and of the remote end. They are link-local: never routed, and in conflict with no
// CIDR.
func (p Peering) TunnelAddresses(own, peer int) (local netip.Prefix, remote netip.Addr) {
	first := 4 * TunnelOf(p.Role, own, peer).Index()
	end := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{169, 254, 18, byte(first + n)}) }
	ends := [2]netip.Addr{end(1), end(2)} // of the server and of the client
	if p.Role == Client {
		ends[0], ends[1] = ends[1], ends[0]
	}
	return netip.PrefixFrom(ends[0], 30), ends[1]
}

// Endpoints returns the endpoints of all tunnels of a client.
func (p Peering) Endpoints() (all []string) {
	for _, g := range p.Gateways {
		for _, t := range g.Tunnels {
			all = append(all, t.Endpoints...)
		}
	}
	return all
}

// WebSockets returns the URLs of all tunnels of a client.
func (p Peering) WebSockets() (all []string) {
	for _, g := range p.Gateways {
		for _, t := range g.Tunnels {
			all = append(all, t.WebSocket...)
		}
	}
	return all
}

// ExposedAs returns the entry of an exposed host, or the zero value if the host is not exposed.
func (p Peering) ExposedAs(host netip.Addr) Exposed {
	for _, e := range p.Exposed {
		if e.Host == host {
			return e
		}
	}
	return Exposed{}
}

// Exposed is a host outside this cluster with the address by which peers reach it.
type Exposed = cidr.Exposed

// Peer is the other cluster of a peering.
type Peer struct {
	ClusterID     string    `json:"clusterID"`
	Name          string    `json:"name"`
	PodCIDRs      []Mapping `json:"podCIDRs"`
	ExternalCIDRs []Mapping `json:"externalCIDRs"` // one for each address family, as Fabric.ExternalCIDRs
	// NodeNetworks have the peer's nodes: a server whose tunnels have no encryption accepts their packets from there.
	NodeNetworks []netip.Prefix `json:"nodeNetworks,omitempty"`
}

// ExternalCIDR returns the mapping of the external CIDR of IPv4.
func (p Peer) ExternalCIDR() Mapping { return first(p.ExternalCIDRs) }

// CIDRs returns the mappings of all of the peer's ranges.
func (p Peer) CIDRs() []Mapping {
	return slices.Concat(p.PodCIDRs, p.ExternalCIDRs)
}

// Local has the ranges of this cluster as its peer reaches them. The peer chooses them. They serve to translate
// addresses; helpers do not use them.
type Local struct {
	PodCIDRs      []Mapping `json:"podCIDRs"`
	ExternalCIDRs []Mapping `json:"externalCIDRs"`
}

// ExternalCIDR returns the mapping of the external CIDR of IPv4; the zero value: not known.
func (l Local) ExternalCIDR() Mapping { return first(l.ExternalCIDRs) }

// Known reports whether the peer has sent its ranges.
func (l Local) Known() bool { return len(l.PodCIDRs) > 0 }

// CIDRs returns the mappings of all ranges, or none if they are not known.
func (l Local) CIDRs() []Mapping {
	if !l.Known() {
		return nil
	}
	return slices.Concat(l.PodCIDRs, l.ExternalCIDRs)
}

// LocalGateway is a gateway of this cluster. Each has its own pod, keys and objects.
type LocalGateway struct {
	// Tunnels lead to the peer's gateways, 1 to MaxGateways. The tunnel to gateway n has index n-1. All gateways have
	// equally many.
	Tunnels []Tunnel `json:"tunnels"`
	// Temporary marks a gateway that a key rotation added. The rotation removes it when it ends; connect removes it as
	// well.
	Temporary bool `json:"temporary,omitempty"`
}

// Driver is what the driver of a tunnel must know of the peer's gateway: one member, by the name of the driver. Only
// the driver and the code that makes keys read it. The zero value: not known yet.
type Driver struct {
	WireGuard wireguard.Peer `json:"wireguard"`
}

// Member returns what the driver must know.
func (d Driver) Member() any { return d.WireGuard }

// Tunnel is a local gateway's end of the tunnel to a gateway of the peer.
type Tunnel struct {
	Driver     Driver `json:"tunnel"`
	ListenPort uint16 `json:"listenPort"` // UDP, at the server
	// host:port at the server, tried in turn; empty on the server, and at a client with the transport WebSocket alone.
	Endpoints []string `json:"endpoints,omitempty"`
	// URLs at the server, wss://HOST:PORT/PATH, tried in turn; empty on the server, and where it has none.
	WebSocket []string `json:"webSocket,omitempty"`
}
