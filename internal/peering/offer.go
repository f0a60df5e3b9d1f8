package peering

import (
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/peering/desired"
	"liqonet.io/liqonet/internal/records"
)

// half returns what is known of the member, for its decisions.
func (m *member) half() desired.Half {
	h := desired.Half{
		Context: m.cluster.Context, Cluster: records.Party{ID: m.id, Name: m.name}, Nodes: m.discovery.Nodes, Fabric: m.fabric,
		Peering: m.peering, Wanted: m.wanted, Recorded: m.have, Written: m.written, Role: m.role, Settings: m.settings,
		Addresses: m.addresses, Number: m.number, Endpoints: m.endpoints, Sizes: m.sizes, Peer: m.peer,
	}
	for i, k := range m.keys {
		h.Keys = append(h.Keys, desired.Key{Driver: k.Driver(), Preshared: m.found[i], Replaced: m.rekeyed[i]})
	}
	return h
}

// offer returns what the peer may know of the member: all that it knows now.
func (m *member) offer() records.Offer {
	o := m.half().Offer()
	o.Seal, o.Preshared = m.seal.public(), m.sealed()
	return o
}

// gatewayCount and peerCount return the numbers of gateways that the member and its peer have during this run.
func (m *member) gatewayCount() int { return m.half().Gateways() }
func (m *member) peerCount() int    { return m.half().PeerGateways() }

// gatewayIDs returns the IDs of the member's gateways.
func (m *member) gatewayIDs() []records.GatewayID {
	return records.GatewayIDs(m.peering, m.gatewayCount())
}

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
