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

// end is a site as one of the two ends of a peering.
type end struct {
	site
	peer     *end             // the other one
	peering  string           // its name here: that of the other cluster
	have     *records.Peering // as it was found; nil: there is none yet
	role     records.Role     // by choose
	settings settings         // by choose
	// Of each gateway that the end is to have, by its number less one:
	keys     []*inventory.Keys // as they were found or made; nil: none yet
	rekeyed  []bool            // it stands, with other keys
	gateways []choose.Gateway  // address in the overlay, and network identifier
	// addresses that the peer's ranges have here.
	addresses choose.Assigned
	endpoints map[records.TunnelID][]string // of the server, as the client is to use them; none: not known yet

	onePort bool // the user chose the server's port
	spare   bool // a single gateway has a temporary second one, during a rotation of keys
	adding  bool // gateways that stand stay as they are

	sizes   hopSizes         // as reported
	written *records.Peering // the record as it is now; nil: there is none
	proof   []witness        // of each gateway
	remains bool             // without a record, there were keys or reservations of the peering: a rollback keeps it
	joining bool             // this run writes a peering where no record was
	turn    chan struct{}    // of size one, for both ends: a gateway is being replaced
}

// meet decides what the end calls the peering, and refuses what would mix up clusters.
func (e *end) meet() error {
	peer := e.peer
	e.peering = peer.name
	for _, p := range e.found.peerings {
		switch {
		case p.Peer.ClusterID == peer.id && p.Name != peer.name:
			return hint.With(
				fmt.Errorf("cluster %q already has a peering with cluster %q, named %q", e.cluster.Context, peer.cluster.Context, p.Name),
				fmt.Sprintf("liqoctl network disconnect %s --one-side --context %s", p.Name, kube.ShellWord(e.cluster.Context)))
		case p.Name == peer.name && p.Peer.ClusterID != peer.id:
			return e.nameTaken()
		case p.Name == peer.name:
			e.have = &p
		}
	}
	e.written = e.have
	e.remains = e.have == nil && slices.Contains(choose.ReservedPeerings(e.found.registry), e.peering)
	if e.name == peer.name {
		return &progress.InputError{Err: fmt.Errorf("both clusters have the name %q", e.name), Advice: "set other names with --name, --remote-name"}
	}
	return nil
}

// nameTaken says that the peering's name stands for another cluster.
func (e *end) nameTaken() error {
	return hint.With(fmt.Errorf("cluster %q has a peering %q with another cluster", e.cluster.Context, e.peering),
		"give the peer another name: --name, --remote-name")
}

// refuses reports whether what cannot work is an error: a connection that stands loses nothing by going on.
func (e *end) refuses() bool { return e.have == nil && !e.options.SkipValidation }

// readGateways reads the keys of the peering, and what its gateways have reported of the hops so far.
func (e *end) readGateways(ctx context.Context) error {
	e.rekeyed = make([]bool, e.count())
	if err := e.readKeys(ctx); err != nil {
		return err
	}
	if e.have == nil {
		e.remains = e.remains || slices.ContainsFunc(e.keys, func(k *inventory.Keys) bool { return k != nil })
		return nil
	}
	var all []hopSizes
	for _, id := range e.have.GatewayIDs() {
		object, err := kube.Find[*corev1.ConfigMap](ctx, e.cluster, id.StatusName())
		if err != nil {
			return err
		}
		status, err := inventory.DecodeStatus(e.cluster, object)
		if err != nil {
			return err
		}
		all = append(all, sizesIn(status, e.nodes.all()))
	}
	e.sizes = narrowestOf(all)
	return nil
}

// readKeys reads the keys of all gateways that the end is to have.
func (e *end) readKeys(ctx context.Context) (err error) {
	e.keys = make([]*inventory.Keys, e.count())
	for i, id := range e.gatewayIDs() {
		if e.keys[i], err = inventory.ReadKeys(ctx, e.cluster, id); err != nil {
			return err
		}
	}
	return nil
}

// assign gives the peer, and the gateways, addresses of a registry.
func (e *end) assign(r *ipam.Registry) (err error) {
	avoided, _ := e.inUse()
	f := e.peer.fabric
	e.addresses, err = choose.ReservePeer(r, e.peering,
		choose.Remote{Pods: f.PodCIDRs, External: f.ExternalCIDR, Underlay: f.NodeNetworks, InUse: avoided})
	if err != nil {
		return err
	}
	g := choose.Gateways{Peering: e.peering, Internal: e.own.Internal, Count: e.count()}
	if e.have != nil {
		for _, standing := range e.have.Gateways {
			g.Current = append(g.Current, standing.Address)
		}
	}
	e.gateways, err = g.Reserve(r)
	return err
}

// reserve reserves addresses for the peer.
func (e *end) reserve(ctx context.Context) error {
	return inventory.AddReservations(ctx, e.cluster, e.found.fabric, e.assign)
}

// gatewayObjects renders the gateways.
func (e *end) gatewayObjects() ([]kube.Object, error) {
	return templates.Gateways(templates.GatewayValues{
		Namespace: e.cluster.Namespace, Peering: e.peering, Image: e.options.Image, Pods: e.pods(),
		Role: e.role, Implementation: e.settings.implementation, Gateways: e.count(), Tunnels: e.peer.count(), Service: e.settings.service,
	})
}

// prepare applies the gateways, so that their pods start while endpoints come up, and reserves the peer's addresses.
// The keys, which the pods mount, are there.
func (e *end) prepare(ctx context.Context) error {
	gateways, err := e.gatewayObjects()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return e.reserve(ctx) })
	group.Go(func() error {
		if err := e.applyGateways(ctx, gateways); err != nil {
			return err
		}
		if e.role == records.Server || e.have == nil || e.have.Role == e.role {
			return nil
		}
		// The server of before is the client now.
		return e.remove(ctx, &corev1.Service{ObjectMeta: inventory.Meta(e.cluster.Namespace, records.ServiceName(e.peering))})
	})
	return group.Wait()
}

// document is the peering as the end's helpers should know it. What is not known yet stays as it is in the
// record: endpoints, the MTU before nodes have reported, a public key that is not made yet.
func (e *end) document() records.Peering {
	peer, s := e.peer, e.settings
	p := records.Peering{
		Version: records.SchemaVersion, Name: e.peering, Role: e.role,
		Peer: records.Peer{
			ClusterID: peer.id, Name: peer.name,
			PodCIDRs: e.addresses.Pods, ExternalCIDR: e.addresses.External,
		},
		Local:          records.Local{PodCIDRs: peer.addresses.Pods, ExternalCIDR: peer.addresses.External},
		GatewayMode:    s.mode,
		Implementation: s.implementation,
		MTU:            s.MTU,
		ClampMSS:       s.clampMSS,
		Fixed:          s.Fixed,
	}
	for i, g := range e.gateways {
		gateway := records.LocalGateway{OverlayID: g.Overlay, Address: g.Address, Temporary: i >= e.lasting()}
		for j := range peer.count() {
			gateway.Tunnels = append(gateway.Tunnels, e.tunnel(i+1, j+1))
		}
		p.Gateways = append(p.Gateways, gateway)
	}
	if p.MTU == 0 {
		p.MTU = e.fittingMTU(e.written)
	}
	if have := e.written; have != nil {
		p.MTU, p.Exposed = cmp.Or(p.MTU, have.MTU), have.Exposed
	}
	return p
}

// write replaces the peering's record.
func (e *end) write(ctx context.Context, wanted records.Peering) error {
	change, err := inventory.Write(ctx, e.cluster, records.PeeringName(e.peering), e.written, wanted)
	e.note(change)
	if err == nil {
		e.written = &wanted
	}
	return err
}
