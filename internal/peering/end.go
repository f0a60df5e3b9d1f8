package peering

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/addresses"
	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/status"
	"liqonet.io/liqonet/internal/steps"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/templates"
)

// end is a site as one of the two ends of a peering.
type end struct {
	site
	peer    *end // the other one
	wishes  ConnectOptions
	role    records.Role
	peering string           // its name here: that of the other cluster
	have    *records.Peering // as it was found; nil: there is none yet
	keys    *inventory.Keys  // as they were found or made
	rekeyed bool             // the gateway that stands has other keys
	// addresses that the peer's ranges have here.
	addresses addresses.Assigned
	endpoints []string // of the server, as the client is to use them; none: not known yet

	sizes   hopSizes        // as reported
	written records.Peering // as it is now
	proof   records.Status
	joining bool // this run writes a peering where none was
	shared  bool // another run writes it at the same time: what fails here is not undone under it
	wrote   bool // the document is as this run wants it
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
				fmt.Sprintf("liqoctl network disconnect %s --one-side --context %s", p.Name, cluster.ShellWord(e.cluster.Context)))
		case p.Name == peer.name && p.Peer.ClusterID != peer.id:
			return e.nameTaken()
		case p.Name == peer.name:
			e.have = &p
		}
	}
	if e.name == peer.name {
		return &steps.InputError{Err: fmt.Errorf("both clusters have the name %q", e.name), Advice: "set other names with --name, --remote-name"}
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

// readGateway reads the keys of the peering, and what its gateway has reported of the hops so far.
func (e *end) readGateway(ctx context.Context) (err error) {
	if e.keys, err = inventory.ReadKeys(ctx, e.cluster, e.peering); err != nil || e.have == nil {
		return err
	}
	object, err := cluster.Find[*corev1.ConfigMap](ctx, e.cluster, records.GatewayID{Peering: e.peering, Number: 1}.StatusName())
	if err != nil {
		return err
	}
	status, err := inventory.DecodeStatus(e.cluster, object)
	e.sizes = sizesIn(status, e.readyNodes())
	return err
}

// assign gives the peer addresses of a registry.
func (e *end) assign(r *ipam.Registry) (err error) {
	avoided, _ := e.inUse()
	f := e.peer.fabric
	e.addresses, err = addresses.ReservePeer(r, e.peering, e.own.Internal,
		addresses.Remote{Pods: f.PodCIDRs, External: f.ExternalCIDR, Underlay: f.NodeNetworks, InUse: avoided})
	return err
}

// reserve reserves addresses for the peer.
func (e *end) reserve(ctx context.Context) error {
	return addresses.Add(ctx, e.cluster, e.found.fabric, e.assign)
}

// gatewayObjects renders the gateway.
func (e *end) gatewayObjects() ([]cluster.Object, error) {
	return templates.Gateway(templates.GatewayValues{
		Namespace: e.cluster.Namespace, Peering: e.peering, Image: e.options.Image, Pods: e.pods(),
		Role: e.role, Implementation: e.wishes.Implementation, Service: e.wishes.Service,
	})
}

// prepare applies the gateway, so that its pod starts while endpoints come up, and reserves the peer's addresses. The
// keys, which the pod mounts, are there.
func (e *end) prepare(ctx context.Context) error {
	gateway, err := e.gatewayObjects()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return e.reserve(ctx) })
	group.Go(func() error {
		if e.rekeyed {
			// A gateway that stands would go on with keys that are no more: it reads them once.
			if err := e.remove(ctx, &appsv1.Deployment{ObjectMeta: inventory.Meta(e.cluster.Namespace, records.GatewayID{Peering: e.peering, Number: 1}.Name())}); err != nil {
				return err
			}
		}
		if err := e.apply(ctx, e.have != nil, gateway...); err != nil {
			return err
		}
		if e.role == records.Server || e.have == nil || e.have.Role == e.role {
			return nil
		}
		// The server of before is the client now.
		return e.remove(ctx, &corev1.Service{ObjectMeta: inventory.Meta(e.cluster.Namespace, records.GatewayID{Peering: e.peering, Number: 1}.Name())})
	})
	return group.Wait()
}

// document is the peering as the end's helpers should know it. What is not known yet stays as it is in the
// document that is there (nil: none is): endpoints, the MTU before nodes have reported, a public key that is not made yet.
func (e *end) document(have *records.Peering) records.Peering {
	peer, o := e.peer, e.wishes
	tunnel := records.Tunnel{ListenPort: templates.TunnelPort, Address: serverAddress, PeerAddress: clientAddress.Addr()}
	if e.role == records.Client {
		tunnel.Address, tunnel.PeerAddress = clientAddress, serverAddress.Addr()
		tunnel.Endpoints = e.endpoints
	}
	if peer.keys != nil {
		tunnel.PublicKey = peer.keys.Public()
	}
	if have != nil {
		before := have.Gateways[0].Tunnels[0]
		if peer.keys == nil && !peer.rekeyed {
			tunnel.PublicKey = before.PublicKey
		}
		if e.role == records.Client && len(tunnel.Endpoints) == 0 {
			tunnel.Endpoints = before.Endpoints
		}
	}
	p := records.Peering{
		Version: records.PeeringVersion, Name: e.peering, Role: e.role,
		Peer: records.Peer{
			ClusterID: peer.id, Name: peer.name,
			PodCIDRs: e.addresses.Pods, ExternalCIDR: e.addresses.External,
		},
		Local: records.Local{PodCIDRs: peer.addresses.Pods, ExternalCIDR: peer.addresses.External},
		Gateways: []records.LocalGateway{
			{OverlayID: e.addresses.Overlay, Address: e.addresses.Gateway, Tunnels: []records.Tunnel{tunnel}},
		},
		Implementation: o.Implementation,
		MTU:            o.MTU,
		ClampMSS:       o.ClampMSS,
	}
	if p.MTU == 0 {
		p.MTU = e.fittingMTU(have)
	}
	if have != nil {
		p.MTU, p.Exposed = cmp.Or(p.MTU, have.MTU), have.Exposed
	}
	return p
}

// write brings the peering's document into the state that want computes from the live one (nil: there is none), provided
// that nobody changes it in between: else it is computed anew from what the other left, exposed hosts for instance.
func (e *end) write(ctx context.Context, want func(live *records.Peering) records.Peering) error {
	change, err := inventory.Swap(ctx, e.cluster, records.PeeringName(e.peering), e.run, func(live *records.Peering) (records.Peering, error) {
		if err := e.expect(live); err != nil {
			return records.Peering{}, err
		}
		e.written = want(live)
		return e.written, e.checkOvertaken(live)
	})
	e.note(change)
	e.wrote = e.wrote || err == nil
	return err
}

// expect refuses a document that somebody else has removed, or made for another cluster, since it was read.
func (e *end) expect(live *records.Peering) error {
	switch {
	case live == nil && (e.have != nil || e.wrote):
		e.joining = true // what this run has made belongs to no connection
		return hint.With(fmt.Errorf("peering %q of cluster %q was removed during this run", e.peering, e.cluster.Context), "run this again to connect")
	case live != nil && live.Peer.ClusterID != e.peer.id:
		return e.nameTaken()
	}
	return nil
}

// checkOvertaken refuses to undo what others have changed since this run compared the document, unless it is to update.
func (e *end) checkOvertaken(live *records.Peering) error {
	if live == nil || e.have == nil || e.options.Update || inventory.Same(e.written, *live) {
		return nil
	}
	found := *e.have
	if found.Exposed = live.Exposed; inventory.Same(found, *live) {
		return nil
	}
	return steps.Overtaken(e.cluster, records.PeeringName(e.peering), *live, e.written)
}

// result describes the end of a connection that was proven.
func (e *end) result() SideResult {
	p, s := e.written, e.proof
	r := SideResult{
		Cluster: e.info(), Peering: e.peering, Role: e.role, Mappings: status.MappedRanges(p.Peer.PodCIDRs, p.Peer.ExternalCIDR),
		Endpoints: p.Endpoints(), Gateway: p.Gateways[0].Address, MTU: p.MTU,
		Proof: Proof{
			Time: s.Time, Endpoint: s.Endpoint, LastHandshake: s.LastHandshake, RTT: time.Duration(s.RTT), Loss: s.Loss,
			Implementation: s.Implementation, Overlay: s.Overlay,
		},
	}
	ready := e.readyNodes()
	for _, n := range s.Nodes {
		if slices.Contains(ready, n.Name) {
			r.Proof.Nodes = append(r.Proof.Nodes, NodeProof{Name: n.Name, RTT: time.Duration(n.ProofRTT)})
		}
	}
	return r
}
