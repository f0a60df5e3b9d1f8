package peering

import (
	"context"

	"liqonet.io/liqonet/internal/peering/desired"
	"liqonet.io/liqonet/internal/records"
)

// half returns what is known of the member, for its decisions.
func (m *member) half() desired.Half {
	h := desired.Half{
		Cluster: records.Party{ID: m.id, Name: m.name}, Nodes: m.discovery.Nodes, Fabric: m.fabric,
		Peering: m.peering, Wanted: m.wanted, Recorded: m.have, Written: m.written, Role: m.role, Settings: m.settings,
		Addresses: m.addresses, Number: m.number, Endpoints: m.endpoints, WebSocket: m.webSocket, Sizes: m.sizes, Peer: m.peer,
	}
	for i, k := range m.keys {
		h.Keys = append(h.Keys, desired.Key{Driver: k.Driver(), Replaced: m.replaced[i]})
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

// keyIDs identify the keys of the member's gateways; "" where they are not known yet.
func (m *member) keyIDs() []string {
	ids := make([]string, len(m.keys))
	for i, k := range m.keys {
		ids[i] = k.ID()
	}
	return ids
}

// rekeyed reports whether the gateway with number i+1 exists with other keys than it must have.
func (m *member) rekeyed(i int) bool { return m.running[i] != "" && m.running[i] != m.keys[i].ID() }

// Link sends a half's offer to the other half of the command, and returns the answer: the other one's offer of the same
// round.
type Link func(ctx context.Context, own records.Offer) (records.Offer, error)

// exchange gives each member the other one's present offer.
func (c *connector) exchange(ctx context.Context) (err error) {
	if c.link != nil {
		c.local.peer, err = c.link(ctx, c.local.offer())
		return err
	}
	c.local.peer, c.remote.peer = c.remote.offer(), c.local.offer()
	return nil
}

// only returns a step of the member with a role.
func only(role records.Role, step func(*member, context.Context) error) func(*member, context.Context) error {
	return func(m *member, ctx context.Context) error {
		if m.role != role {
			return nil
		}
		return step(m, ctx)
	}
}

// inTurn runs steps of the members, each after the offers that the one before has left.
func (c *connector) inTurn(ctx context.Context, all ...func(*member, context.Context) error) error {
	for _, step := range all {
		if err := c.both(ctx, step); err != nil {
			return err
		}
		if err := c.exchange(ctx); err != nil {
			return err
		}
	}
	return nil
}
