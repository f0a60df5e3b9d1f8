package peering

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/desired"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/choose"
	"liqonet.io/liqonet/templates"
)

// member is a site as one of the two clusters of a peering.
type member struct {
	site
	wanted   desired.Wanted
	peer     records.Offer    // the latest one: all that the member knows of the other one
	peering  string           // name of the peering in this cluster: the other cluster's name
	have     *records.Peering // the record as read; nil: it does not exist
	role     records.Role     // by choose
	settings records.GatewaySettings
	// For each gateway that the member will have, in the order of their numbers:
	keys     []*inventory.Keys // as read or generated; nil: none yet
	running  []string          // identifiers of the keys with which its pod starts, as read; "": it does not exist
	replaced []bool            // its pod still runs with other keys

	seal seal
	// addresses are those of the peer's ranges in this cluster, number is that of the peering.
	addresses choose.Assigned
	number    int
	endpoints map[records.TunnelID][]string // that the server's cluster offers; none: not known yet
	webSocket [][]string                    // URLs of its gateways

	addOnly bool // existing gateways are not changed

	sizes         desired.Sizes    // as reported
	written       *records.Peering // the current record; nil: it does not exist
	verifications []verification   // of each gateway, in the order of their numbers
	remains       bool             // there is no record, but keys or reservations of the peering: a rollback keeps them
	creating      bool             // this run creates the peering's record
	replacing     chan struct{}    // semaphore of both members: one gateway is replaced at a time
	// unannounced means that a gateway's pod with old keys did not terminate: it may be under foreign control, so that
	// the peer must no longer accept its key.
	unannounced bool
}

// avoidPeersName takes the longer name if the peer has the same one. The peer does so as well, if it can.
func (m *member) avoidPeersName() error {
	if m.name == m.peer.Cluster.Name && m.longerName != "" {
		m.name, m.fabric.Name = m.longerName, m.longerName
	}
	return nil
}

// resolvePeering finds the member's record of the peering, and rejects names that refer to another cluster.
func (m *member) resolvePeering() error {
	peer := m.peer.Cluster
	m.peering = peer.Name
	for _, p := range m.observed.peerings {
		switch {
		case p.Peer.ClusterID == peer.ID && p.Name != peer.Name:
			return hint.With(
				fmt.Errorf("cluster %q already has a peering with cluster %q, named %q", m.cluster.Context, peer.Name, p.Name),
				fmt.Sprintf("liqoctl network disconnect %s --one-side --context %s", p.Name, kube.ShellWord(m.cluster.Context)))
		case p.Name == peer.Name && p.Peer.ClusterID != peer.ID:
			return hint.With(fmt.Errorf("cluster %q has a peering %q with another cluster", m.cluster.Context, m.peering),
				"give the peer another name: --name, --remote-name")
		case p.Name == peer.Name:
			m.have = &p
		}
	}
	m.written = m.have
	m.remains = m.have == nil && slices.Contains(choose.ReservedPeerings(m.observed.registry), m.peering)
	if m.name == peer.Name {
		return &progress.InputError{Err: fmt.Errorf("both clusters have the name %q", m.name), Advice: "set other names with --name, --remote-name"}
	}
	return nil
}

// choose decides the role and, in the server's cluster, the settings.
func (m *member) choose() (err error) {
	m.role, m.settings, err = m.half().Choose()
	return err
}

// agree takes the server's settings, and assigns addresses to the peer, on the copy of the registry.
func (m *member) agree() (err error) {
	if m.settings, err = m.half().AgreedSettings(); err != nil {
		return err
	}
	m.wanted.Gateways = m.half().PermanentGateways() // whatever later offers have
	if err := m.seal.accept(m.peer.Seal); err != nil {
		return fmt.Errorf("offer of cluster %q: %w", m.peer.Cluster.Name, err)
	}
	if err := m.half().CheckPorts(); err != nil {
		return err
	}
	return inventory.ExplainAddresses(m.cluster.Context, m.assign(m.observed.registry))
}

// enforcesPreflight reports whether a failed preflight check is an error. For an existing peering it is a warning,
// because a run cannot make such a peering worse.
func (m *member) enforcesPreflight() bool { return m.have == nil && !m.options.SkipValidation }

// readGateways reads the keys of the peering, and the gateways' latest reports of the hops.
func (m *member) readGateways(ctx context.Context) error {
	if err := m.readKeys(ctx); err != nil {
		return err
	}
	if m.have == nil {
		m.remains = m.remains || slices.ContainsFunc(m.keys, func(k *inventory.Keys) bool { return k != nil })
		return nil
	}
	var all []desired.Sizes
	for _, id := range m.have.GatewayIDs() {
		object, err := kube.Find[*corev1.ConfigMap](ctx, m.cluster, id.StatusName())
		if err != nil {
			return err
		}
		status, err := inventory.DecodeStatus(m.cluster, object)
		if err != nil {
			return err
		}
		all = append(all, desired.SizesOf(status, m.nodes.allReady()))
	}
	m.sizes = desired.MergeSizes(all)
	return nil
}

// readKeys reads the keys of all gateways that the member will have.
func (m *member) readKeys(ctx context.Context) (err error) {
	ids := m.gatewayIDs()
	keys, running := make([]*inventory.Keys, len(ids)), make([]string, len(ids))
	for i, id := range ids {
		if keys[i], err = inventory.ReadKeys(ctx, m.cluster, id); err != nil {
			return err
		}
		d, err := kube.Find[*appsv1.Deployment](ctx, m.cluster, id.Name())
		if err != nil {
			return err
		}
		if d != nil {
			running[i] = cmp.Or(d.Spec.Template.Annotations[templates.AnnotationKey], keys[i].ID(), "none")
		}
	}
	m.keys, m.replaced, m.running = keys, make([]bool, len(ids)), running
	return nil
}

// assign reserves addresses for the peer and a number for the peering in a registry.
func (m *member) assign(r *ipam.Registry) (err error) {
	avoided, _ := m.inUse()
	far := m.peer.Ranges
	m.addresses, err = choose.ReservePeer(r, m.peering,
		choose.Remote{Pods: far.PodCIDRs, External: far.ExternalCIDRs[0], Underlay: far.NodeNetworks, InUse: avoided})
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
		Role: m.role, Settings: m.settings, Gateways: m.gatewayCount(), Tunnels: m.peerCount(), Keys: m.keyIDs(),
	})
}

// prepare applies the gateways, so that their pods start while endpoints come up, and reserves the peer's addresses.
// The keys, which the pods mount, exist already.
func (m *member) prepare(ctx context.Context) error {
	gateways, err := m.gatewayObjects()
	if err != nil {
		return err
	}
	if err := m.reserve(ctx); err != nil {
		return err
	}
	return m.applyGateways(ctx, gateways)
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
