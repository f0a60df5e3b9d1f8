package peering

import (
	"slices"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
)

// offer returns what the peer may know of the member: all that it knows now.
func (m *member) offer() records.Offer {
	f := m.fabric
	o := records.Offer{
		Version: records.SchemaVersion, Cluster: records.Party{ID: m.id, Name: m.name},
		Ranges:   records.Ranges{PodCIDRs: f.PodCIDRs, ExternalCIDRs: f.ExternalCIDRs, NodeNetworks: f.NodeNetworks},
		Assigned: records.Local{PodCIDRs: m.addresses.Pods, ExternalCIDRs: m.addresses.External},
		Role:     m.role, OnePort: m.onePort, Recorded: recorded(m.have),
		Hops: records.Hops{Links: f.MTU, Overlay: m.sizes.overlay, Tunnel: m.sizes.gateways, Complete: m.sizes.complete()},
		Seal: m.seal.public(), Preshared: m.sealed(),
	}
	if m.role == "" { // the number of gateways may depend on the peer's offer
		return o
	}
	if m.role == records.Server {
		o.Settings = &m.settings
	}
	for i := range m.gatewayCount() {
		var g records.OfferedGateway
		if i < len(m.keys) {
			g.Driver, g.Preshared, g.Replaced = m.keys[i].Driver(), m.found[i], m.rekeyed[i]
		}
		for j := range m.peerCount() * min(len(m.endpoints), 1) {
			g.Endpoints = append(g.Endpoints, m.endpoints[records.TunnelID{Server: i + 1, Client: j + 1}])
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
	first := p.Gateways[0].Tunnels
	r := &records.Recorded{Role: p.Role, Settings: p.Settings, MTU: p.MTU, Gateways: len(first), Drivers: make([]records.Driver, len(first))}
	for i, t := range first {
		if !slices.ContainsFunc(p.Gateways, func(g records.LocalGateway) bool { return g.Tunnels[i].Driver != t.Driver }) {
			r.Drivers[i] = t.Driver
		}
	}
	for _, g := range p.Gateways {
		var all [][]string
		for _, t := range g.Tunnels {
			all = append(all, t.Endpoints)
		}
		r.Endpoints = append(r.Endpoints, all)
	}
	return r
}

// peerCount returns the number of gateways that the peer will have.
func (m *member) peerCount() int { return len(m.peer.Gateways) }

// presharedIDs returns the identifiers of the preshared keys of gateways; "" for nil.
func presharedIDs(all []*inventory.Keys) []string {
	ids := make([]string, len(all))
	for i, k := range all {
		if k != nil {
			ids[i] = inventory.PresharedID(k.Preshared)
		}
	}
	return ids
}
