package peering

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/choose"
	"liqonet.io/liqonet/templates"
)

// member is a site as one of the two clusters of a peering.
type member struct {
	site
	peer     *member                 // the other member
	peering  string                  // name of the peering in this cluster: the other cluster's name
	have     *records.Peering        // the record as read; nil: it does not exist
	role     records.Role            // by choose
	settings records.GatewaySettings // by choose
	// For each gateway that the member will have, in the order of their numbers:
	keys    []*inventory.Keys // as read or generated; nil: none yet
	rekeyed []bool            // it exists, with other keys
	// addresses are those of the peer's ranges in this cluster, number is that of the peering.
	addresses choose.Assigned
	number    int
	endpoints map[records.TunnelID][]string // of the server, as used by the client; none: not known yet

	onePort bool // the user has set the server's port
	spare   bool // a single gateway has a temporary second one, during a rotation of keys
	addOnly bool // existing gateways are not changed

	sizes         hopSizes         // as reported
	written       *records.Peering // the current record; nil: it does not exist
	verifications []verification   // of each gateway, in the order of their numbers
	remains       bool             // there is no record, but keys or reservations of the peering: a rollback keeps them
	creating      bool             // this run creates the peering's record
	replacing     chan struct{}    // semaphore of both members: one gateway is replaced at a time
}

// resolvePeering finds the member's record of the peering, and rejects names that refer to another cluster.
func (m *member) resolvePeering() error {
	peer := m.peer
	m.peering = peer.name
	for _, p := range m.observed.peerings {
		switch {
		case p.Peer.ClusterID == peer.id && p.Name != peer.name:
			return hint.With(
				fmt.Errorf("cluster %q already has a peering with cluster %q, named %q", m.cluster.Context, peer.cluster.Context, p.Name),
				fmt.Sprintf("liqoctl network disconnect %s --one-side --context %s", p.Name, kube.ShellWord(m.cluster.Context)))
		case p.Name == peer.name && p.Peer.ClusterID != peer.id:
			return m.nameTaken()
		case p.Name == peer.name:
			m.have = &p
		}
	}
	m.written = m.have
	m.remains = m.have == nil && slices.Contains(choose.ReservedPeerings(m.observed.registry), m.peering)
	if m.name == peer.name {
		return &progress.InputError{Err: fmt.Errorf("both clusters have the name %q", m.name), Advice: "set other names with --name, --remote-name"}
	}
	return nil
}

// nameTaken returns the error for a peering whose name is used for another cluster.
func (m *member) nameTaken() error {
	return hint.With(fmt.Errorf("cluster %q has a peering %q with another cluster", m.cluster.Context, m.peering),
		"give the peer another name: --name, --remote-name")
}

// enforcesPreflight reports whether a failed preflight check is an error. For an existing peering it is a warning,
// because a run cannot make such a peering worse.
func (m *member) enforcesPreflight() bool { return m.have == nil && !m.options.SkipValidation }

// readGateways reads the keys of the peering, and the gateways' latest reports of the hops.
func (m *member) readGateways(ctx context.Context) error {
	m.rekeyed = make([]bool, m.gatewayCount())
	if err := m.readKeys(ctx); err != nil {
		return err
	}
	if m.have == nil {
		m.remains = m.remains || slices.ContainsFunc(m.keys, func(k *inventory.Keys) bool { return k != nil })
		return nil
	}
	var all []hopSizes
	for _, id := range m.have.GatewayIDs() {
		object, err := kube.Find[*corev1.ConfigMap](ctx, m.cluster, id.StatusName())
		if err != nil {
			return err
		}
		status, err := inventory.DecodeStatus(m.cluster, object)
		if err != nil {
			return err
		}
		all = append(all, hopSizesOf(status, m.nodes.allReady()))
	}
	m.sizes = mergeHopSizes(all)
	return nil
}

// readKeys reads the keys of all gateways that the member will have.
func (m *member) readKeys(ctx context.Context) (err error) {
	m.keys = make([]*inventory.Keys, m.gatewayCount())
	for i, id := range m.gatewayIDs() {
		if m.keys[i], err = inventory.ReadKeys(ctx, m.cluster, id); err != nil {
			return err
		}
	}
	return nil
}

// assign reserves addresses for the peer and a number for the peering in a registry.
func (m *member) assign(r *ipam.Registry) (err error) {
	avoided, _ := m.inUse()
	f := m.peer.fabric
	m.addresses, err = choose.ReservePeer(r, m.peering,
		choose.Remote{Pods: f.PodCIDRs, External: f.ExternalCIDR(), Underlay: f.NodeNetworks, InUse: avoided})
	if err != nil {
		return err
	}
	var have records.Peering
	if m.have != nil {
		have = *m.have
	}
	m.number, err = choose.Number(r, m.peering, m.own.Internal, have.Number)
	return err
}

// reserve reserves addresses for the peer in the cluster.
func (m *member) reserve(ctx context.Context) error {
	return inventory.AddReservations(ctx, m.cluster, m.observed.fabric, m.assign)
}

// gatewayObjects renders the gateways.
func (m *member) gatewayObjects() ([]kube.Object, error) {
	return templates.Gateways(templates.GatewayValues{
		Namespace: m.cluster.Namespace, Peering: m.peering, Image: m.options.Image, Pods: m.pods(),
		Role: m.role, Settings: m.settings, Gateways: m.gatewayCount(), Tunnels: m.peer.gatewayCount(),
	})
}

// prepare applies the gateways, so that their pods start while endpoints come up, and reserves the peer's addresses.
// The keys, which the pods mount, exist already.
func (m *member) prepare(ctx context.Context) error {
	gateways, err := m.gatewayObjects()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return m.reserve(ctx) })
	group.Go(func() error {
		if err := m.applyGateways(ctx, gateways); err != nil {
			return err
		}
		if m.role == records.Server || m.have == nil || m.have.Role == m.role {
			return nil
		}
		// The previous server is now the client.
		return m.remove(ctx, &corev1.Service{ObjectMeta: inventory.Meta(m.cluster.Namespace, records.ServiceName(m.peering))})
	})
	return group.Wait()
}

// desiredRecord returns the record of the peering. Values that are not known yet are those of the current record:
// endpoints, the MTU before nodes have reported, a public key that is not generated yet.
func (m *member) desiredRecord() records.Peering {
	peer := m.peer
	p := records.Peering{
		Version: records.SchemaVersion, Name: m.peering, Number: m.number, Role: m.role,
		Peer: records.Peer{
			ClusterID: peer.id, Name: peer.name,
			PodCIDRs: m.addresses.Pods, ExternalCIDRs: m.addresses.External,
		},
		Local:    records.Local{PodCIDRs: peer.addresses.Pods, ExternalCIDRs: peer.addresses.External},
		Settings: m.settings, MTU: *m.settings.Complete().MTU,
	}
	for i := range m.gatewayCount() {
		gateway := records.LocalGateway{Temporary: i >= m.permanentGateways()}
		for j := range peer.gatewayCount() {
			gateway.Tunnels = append(gateway.Tunnels, m.tunnel(i+1, j+1))
		}
		p.Gateways = append(p.Gateways, gateway)
	}
	if p.MTU == 0 {
		p.MTU = m.fittingMTU(m.written)
	}
	if have := m.written; have != nil {
		p.MTU, p.Exposed = cmp.Or(p.MTU, have.MTU), have.Exposed
	}
	return p
}

// write replaces the peering's record.
func (m *member) write(ctx context.Context, desired records.Peering) error {
	change, err := inventory.Write(ctx, m.cluster, records.PeeringName(m.peering), m.written, desired)
	m.recordChanges(change)
	if err == nil {
		m.written = &desired
	}
	return err
}
