// Package desired decides what one cluster of a peering should have, from what is known of the cluster, what the user
// wants of it, and the peer's latest offer. It has no client, clock or randomness: two halves of a command that have
// the same values decide the same.
package desired

import (
	"liqonet.io/liqonet/internal/kube/discover"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam/choose"
)

// Half is one cluster of a peering. Fields that are not known yet are zero.
type Half struct {
	Cluster records.Party
	Nodes   []discover.Node
	Fabric  records.Fabric
	Peering string // its name in this cluster: the name of the other one
	Wanted  Wanted
	// Recorded is the peering's record as the command found it, Written the present one; nil: there is none.
	Recorded, Written *records.Peering
	Role              records.Role
	// Settings are by Choose in the server's cluster, and the server's in the client's.
	Settings  records.GatewaySettings
	Addresses choose.Assigned // of the peer's ranges in this cluster
	Number    int             // of the peering
	Keys      []Key           // of its gateways, in the order of their numbers
	Endpoints map[records.TunnelID][]string
	WebSocket [][]string // URLs of its gateways
	Sizes     Sizes
	Peer      records.Offer
}

// Wanted is what the user wants of a peering, from the view of one of its clusters.
type Wanted struct {
	Serves   *bool // the cluster is the WireGuard server; nil: as it is
	Settings records.GatewaySettings
	Initial  records.Role // in a new peering
	Gateways int          // 0: as it is
	Spare    bool         // a single gateway has a temporary second one
}

// Key is the public part of a gateway's keys.
type Key struct {
	Driver   records.Driver
	Replaced bool // the gateway's pod still runs with another key pair
}

// onePort reports whether the user has set the server's port.
func (h Half) onePort() bool { return len(h.Wanted.Settings.FirstPorts()) > 0 }

// Offer returns what the peer may know: all that is known. The command adds what is sealed.
func (h Half) Offer() records.Offer {
	f := h.Fabric
	o := records.Offer{
		Version: records.SchemaVersion, Cluster: h.Cluster,
		Ranges:   records.Ranges{PodCIDRs: f.PodCIDRs, ExternalCIDRs: f.ExternalCIDRs, NodeNetworks: f.NodeNetworks},
		Assigned: records.Local{PodCIDRs: h.Addresses.Pods, ExternalCIDRs: h.Addresses.External},
		Role:     h.Role, OnePort: h.onePort(), Recorded: recorded(h.Recorded), Hops: h.Sizes.hops(f.MTU),
	}
	if h.Role == "" { // the number of gateways may depend on the peer's offer
		return o
	}
	if h.Role == records.Server {
		o.Settings = &h.Settings
	}
	for i := range h.Gateways() {
		var g records.OfferedGateway
		if i < len(h.Keys) {
			g.Driver, g.Replaced = h.Keys[i].Driver, h.Keys[i].Replaced
		}
		for j := range h.PeerGateways() * min(len(h.Endpoints), 1) {
			g.Endpoints = append(g.Endpoints, h.Endpoints[records.TunnelID{Server: i + 1, Client: j + 1}])
		}
		if i < len(h.WebSocket) {
			g.WebSocket = h.WebSocket[i]
		}
		o.Gateways = append(o.Gateways, g)
	}
	return o
}

// recorded returns what concerns the peer in a record; nil for nil.
func recorded(p *records.Peering) *records.Recorded {
	if p == nil {
		return nil
	}
	r := &records.Recorded{Role: p.Role, Settings: p.Settings, MTU: p.MTU, Gateways: len(p.Gateways[0].Tunnels)}
	for _, g := range p.Gateways {
		var all [][]string
		for _, t := range g.Tunnels {
			all = append(all, t.Endpoints)
		}
		r.Endpoints = append(r.Endpoints, all)
	}
	for _, t := range p.Gateways[0].Tunnels { // equal at all gateways
		r.WebSocket = append(r.WebSocket, t.WebSocket)
	}
	return r
}
