package records

import (
	"net/netip"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/wireguard"
)

// Role is a cluster's part in a peering's tunnel.
type Role string

// The roles. The server listens at an address that the client can reach; the client begins.
const (
	Server Role = "server"
	Client Role = "client"
)

// Implementation is that of WireGuard.
type Implementation = wireguard.Implementation

// The implementations of WireGuard. Auto is the kernel's where there is one.
const (
	Auto      = wireguard.Auto
	Kernel    = wireguard.Kernel
	Userspace = wireguard.Userspace
)

// GatewayMode says which of several gateways carry packets.
type GatewayMode string

// The gateway modes.
const (
	ActiveActive  GatewayMode = "active-active"  // all that can
	ActiveStandby GatewayMode = "active-standby" // the first that can
)

// Peering is what the helpers of this cluster need to know of one peer: ConfigMap "peering-NAME".
type Peering struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	Role    Role   `json:"role"`
	Peer    Peer   `json:"peer"`
	// Local are the ranges of this cluster at the peer. The zero value: not known.
	Local Local `json:"local,omitzero"`
	// Gateways are this cluster's, by their number less one: 1 to MaxGateways.
	Gateways []LocalGateway `json:"gateways"`
	// GatewayMode says which gateways nodes send to. The zero value is ActiveActive.
	GatewayMode GatewayMode `json:"gatewayMode,omitempty"`
	// Implementation is that of all tunnels of this side.
	Implementation Implementation `json:"implementation"`
	// MTU is the size in bytes of the largest inner IP packet that travels the whole path unfragmented.
	MTU int `json:"mtu"`
	// ClampMSS limits the TCP maximum segment size to what fits the MTU.
	ClampMSS bool `json:"clampMSS"`
	// Fixed is what the user has set. The zero value: nothing.
	Fixed Fixed `json:"fixed,omitzero"`
	// Exposed are hosts outside this cluster that the peer may reach, at most MaxExposed, sorted by host.
	Exposed []Exposed `json:"exposed,omitempty"`
}

// Fixed are values that the user has set instead of those that liqoctl measures and finds. Only liqoctl needs them.
type Fixed struct {
	MTU          int    `json:"mtu,omitempty"`          // 0: the path MTU
	EndpointHost string `json:"endpointHost,omitempty"` // where the client reaches the server; "": at its Service
	EndpointPort uint16 `json:"endpointPort,omitempty"` // of the first tunnel; 0: the Service's
}

// Bounds of a peering.
const (
	MaxExposed  = 256 // hosts that it can expose
	MaxGateways = 8   // of a side: 64 tunnels
)

// Seen are the ranges by which this cluster reaches the peer's pods, nodes and hosts.
func (p Peering) Seen() []netip.Prefix {
	all := p.Peer.CIDRs()
	seen := make([]netip.Prefix, len(all))
	for i, m := range all {
		seen[i] = m.Seen
	}
	return seen
}

// GatewayIDs are those of this cluster's gateways.
func (p Peering) GatewayIDs() []GatewayID { return GatewayIDs(p.Name, len(p.Gateways)) }

// Tunnel returns this side's end of the tunnel of a gateway to one of the peer, by their numbers, and false if there is
// none.
func (p Peering) Tunnel(own, peer int) (Tunnel, bool) {
	if own > len(p.Gateways) || peer > len(p.Gateways[own-1].Tunnels) {
		return Tunnel{}, false
	}
	return p.Gateways[own-1].Tunnels[peer-1], true
}

// Endpoints are those of all tunnels of a client's side.
func (p Peering) Endpoints() (all []string) {
	for _, g := range p.Gateways {
		for _, t := range g.Tunnels {
			all = append(all, t.Endpoints...)
		}
	}
	return all
}

// ExposedAs is how the peering exposes a host; the zero value: it does not.
func (p Peering) ExposedAs(host netip.Addr) Exposed {
	for _, e := range p.Exposed {
		if e.Host == host {
			return e
		}
	}
	return Exposed{}
}

// Exposed is a host outside this cluster, as peers reach it.
type Exposed = cidr.Exposed

// Peer is the other cluster of a peering.
type Peer struct {
	ClusterID    string    `json:"clusterID"`
	Name         string    `json:"name"`
	PodCIDRs     []Mapping `json:"podCIDRs"`
	ExternalCIDR Mapping   `json:"externalCIDR"`
}

// CIDRs returns the mappings of all of the peer's ranges.
func (p Peer) CIDRs() []Mapping {
	return append(append([]Mapping(nil), p.PodCIDRs...), p.ExternalCIDR)
}

// Local are the ranges of this cluster as its peer sees them. The peer decides them. Helpers do not need them, the
// translation of addresses does.
type Local struct {
	PodCIDRs     []Mapping `json:"podCIDRs"`
	ExternalCIDR Mapping   `json:"externalCIDR"`
}

// Known reports whether the peer has sent its ranges.
func (l Local) Known() bool { return len(l.PodCIDRs) > 0 }

// CIDRs returns the mappings of all ranges, none where they are not known.
func (l Local) CIDRs() []Mapping {
	if !l.Known() {
		return nil
	}
	return append(append([]Mapping(nil), l.PodCIDRs...), l.ExternalCIDR)
}

// LocalGateway is a gateway of this cluster. It has its own pod, keys and objects.
type LocalGateway struct {
	// OverlayID is the virtual network identifier (24 bits, not 0) of packets between nodes and this gateway.
	OverlayID uint32 `json:"overlayID"`
	// Address is the internal address of its end of the overlay.
	Address netip.Addr `json:"address"`
	// Tunnels lead to the gateways of the peer, by their number less one: 1 to MaxGateways, as many for each gateway.
	Tunnels []Tunnel `json:"tunnels"`
	// Temporary says that a rotation of keys has added the gateway, and removes it at its end: connect does as well.
	Temporary bool `json:"temporary,omitempty"`
}

// Tunnel is a gateway's end of the WireGuard tunnel to a gateway of the peer.
type Tunnel struct {
	PublicKey   string       `json:"publicKey"`   // of the peer's gateway, base64
	Address     netip.Prefix `json:"address"`     // this end, with the length of the link's range
	PeerAddress netip.Addr   `json:"peerAddress"` // the other end
	ListenPort  uint16       `json:"listenPort"`  // UDP, of the server's end
	// host:port of the server's end, tried in turn; empty on the server.
	Endpoints []string `json:"endpoints,omitempty"`
}
