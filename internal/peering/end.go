package peering

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/templates"
)

// end is a site as one of the two ends of a peering.
type end struct {
	site
	role    records.Role
	peering string           // its name here: that of the other cluster
	have    *records.Peering // as it was found; nil: there is none yet
	keys    *keys            // as they were found or made
	rekeyed bool             // the gateway that stands has other keys
	// addresses that the peer's ranges have here.
	addresses addresses

	sizes   hopSizes        // as reported
	written records.Peering // as it is now
	proof   records.Status
	joining bool // this run writes a peering where none was
	shared  bool // another run writes it at the same time: what fails here is not undone under it
	wrote   bool // the document is as this run wants it
}

// meet decides what the end calls the peering, and refuses what would mix up clusters.
func (e *end) meet(peer *end) error {
	e.peering = peer.name
	for _, p := range e.found.peerings {
		switch {
		case p.Peer.ClusterID == peer.id && p.Name != peer.name:
			return withHint(
				fmt.Errorf("cluster %q already has a peering with cluster %q, named %q", e.Cluster.Context, peer.Cluster.Context, p.Name),
				fmt.Sprintf("liqoctl network disconnect %s --one-side --context %s", p.Name, cluster.ShellWord(e.Cluster.Context)))
		case p.Name == peer.name && p.Peer.ClusterID != peer.id:
			return e.nameTaken()
		case p.Name == peer.name:
			e.have = &p
		}
	}
	if e.name == peer.name {
		return &InputError{Err: fmt.Errorf("both clusters have the name %q", e.name), hint: "set other names with --name, --remote-name"}
	}
	return nil
}

// nameTaken says that the peering's name stands for another cluster.
func (e *end) nameTaken() error {
	return withHint(fmt.Errorf("cluster %q has a peering %q with another cluster", e.Cluster.Context, e.peering),
		"give the peer another name: --name, --remote-name")
}

// refuses reports whether what cannot work is an error: a connection that stands loses nothing by going on.
func (e *end) refuses() bool { return e.have == nil && !e.SkipValidation }

// draft tries the reservations for the peer on a copy of the registry.
func (e *end) draft(peer *end) error {
	var err error
	avoided, _ := e.inUse()
	e.addresses, err = reservePeer(e.found.registry, e.peering, e.own.internal, remote(peer.fabric, avoided))
	return explainAddresses(e.Cluster.Context, err)
}

// reserve reserves addresses for the peer.
func (e *end) reserve(ctx context.Context, peer *end) error {
	avoided, _ := e.inUse()
	err := e.store().Update(ctx, func(r *ipam.Registry) error {
		var err error
		e.addresses, err = reservePeer(r, e.peering, e.own.internal, remote(peer.fabric, avoided))
		return err
	})
	return explainAddresses(e.Cluster.Context, err)
}

// gatewayObjects renders the gateway.
func (e *end) gatewayObjects(o ConnectOptions) ([]cluster.Object, error) {
	v := templates.GatewayValues{
		Namespace: e.Cluster.Namespace, Peering: e.peering, Image: e.Image,
		Role: e.role, Implementation: o.Implementation,
	}
	if e.role == records.Server {
		v.Service = templates.ServiceValues{Type: o.Service.Type, Port: o.Service.Port, NodePort: o.Service.NodePort}
		if o.Service.LoadBalancerIP != "" {
			ip, err := netip.ParseAddr(o.Service.LoadBalancerIP)
			if err != nil {
				return nil, fmt.Errorf("load balancer IP: %w", err)
			}
			v.Service.LoadBalancerIP = ip
		}
	}
	return templates.Gateway(v)
}

// prepare applies the gateway, so that its pod starts while endpoints come up, and reserves the peer's addresses. The
// keys, which the pod mounts, are there.
func (e *end) prepare(ctx context.Context, peer *end, o ConnectOptions) error {
	gateway, err := e.gatewayObjects(o)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return e.reserve(ctx, peer) })
	group.Go(func() error {
		if e.rekeyed {
			if err := e.stopGateway(ctx); err != nil {
				return err
			}
		}
		if err := e.apply(ctx, e.have != nil, gateway...); err != nil {
			return err
		}
		return e.withdrawService(ctx)
	})
	return group.Wait()
}

// stopGateway ends a gateway that would go on with keys that are no more: it reads them once.
func (e *end) stopGateway(ctx context.Context) error {
	gateway := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: records.GatewayName(e.peering), Namespace: e.Cluster.Namespace}}
	changes, err := e.Cluster.Delete(ctx, gateway)
	e.note(changes...)
	return err
}

// withdrawService removes the Service of an end that was the server and is the client now.
func (e *end) withdrawService(ctx context.Context) error {
	if e.role == records.Server || e.have == nil || e.have.Role == e.role {
		return nil
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: records.GatewayName(e.peering), Namespace: e.Cluster.Namespace}}
	changes, err := e.Cluster.Delete(ctx, service)
	e.note(changes...)
	return err
}

// document is the peering as the end's helpers should know it. What is not known yet stays as it is in the
// document that is there (nil: none is): endpoints, the MTU before nodes have reported, a public key that is not made yet.
func (e *end) document(peer *end, o ConnectOptions, endpoints []string, have *records.Peering) records.Peering {
	p := records.Peering{
		Version: records.SchemaVersion, Name: e.peering, Role: e.role,
		Peer: records.Peer{
			ClusterID: peer.id, Name: peer.name,
			PodCIDRs: e.addresses.pods, ExternalCIDR: e.addresses.external,
		},
		Local:          records.Local{PodCIDRs: peer.addresses.pods, ExternalCIDR: peer.addresses.external},
		Tunnel:         records.Tunnel{Implementation: o.Implementation, ListenPort: listenPort},
		OverlayID:      e.addresses.overlay,
		GatewayAddress: e.addresses.gateway,
		MTU:            o.MTU,
		ClampMSS:       o.ClampMSS,
	}
	p.Tunnel.Address, p.Tunnel.PeerAddress = serverAddress, clientAddress.Addr()
	if e.role == records.Client {
		p.Tunnel.Address, p.Tunnel.PeerAddress = clientAddress, serverAddress.Addr()
		p.Tunnel.Endpoints = endpoints
	}
	if p.MTU == 0 {
		p.MTU = e.fittingMTU(peer, have)
	}
	if peer.keys != nil {
		p.Peer.PublicKey = peer.keys.public()
	}
	if have != nil {
		p = completed(p, *have)
	}
	return p
}

// completed fills in what is not known from the document that is there.
func completed(p, have records.Peering) records.Peering {
	if p.MTU == 0 {
		p.MTU = have.MTU
	}
	if p.Peer.PublicKey == "" {
		p.Peer.PublicKey = have.Peer.PublicKey
	}
	if p.Role == records.Client && len(p.Tunnel.Endpoints) == 0 {
		p.Tunnel.Endpoints = have.Tunnel.Endpoints
	}
	p.Exposed = have.Exposed
	return p
}

// write brings the peering's document into the state that want computes from the live one (nil: there is none), provided
// that nobody changes it in between: else it is computed anew from what the other left, exposed hosts for instance.
func (e *end) write(ctx context.Context, peer *end, want func(live *records.Peering) records.Peering) error {
	change, err := swapRecord(ctx, e.Cluster, records.PeeringName(e.peering), e.run, func(live *records.Peering) (records.Peering, error) {
		if err := e.expect(live, peer); err != nil {
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
func (e *end) expect(live *records.Peering, peer *end) error {
	switch {
	case live == nil && (e.have != nil || e.wrote):
		e.joining = true // what this run has made belongs to no connection
		return withHint(fmt.Errorf("peering %q of cluster %q was removed during this run", e.peering, e.Cluster.Context), "run this again to connect")
	case live != nil && live.Peer.ClusterID != peer.id:
		return e.nameTaken()
	}
	return nil
}

// checkOvertaken refuses to undo what others have changed since this run compared the document, unless it is to update.
func (e *end) checkOvertaken(live *records.Peering) error {
	if live == nil || e.have == nil || e.Update || same(e.written, *live) {
		return nil
	}
	found := *e.have
	if found.Exposed = live.Exposed; same(found, *live) {
		return nil
	}
	return overtaken(e.Cluster, records.PeeringName(e.peering), *live, e.written)
}

// result describes the end of a connection that was proven.
func (e *end) result() SideResult {
	p, s := e.written, e.proof
	r := SideResult{
		Cluster: e.info(), Peering: e.peering, Role: e.role, Mappings: mappedRanges(p.Peer.PodCIDRs, p.Peer.ExternalCIDR),
		Endpoints: p.Tunnel.Endpoints, Gateway: p.GatewayAddress, MTU: p.MTU,
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

// both runs a step for two ends at once. The errors of both are told: one of them may be the other's cause.
func both(ctx context.Context, a, b *end, step func(context.Context, *end) error) error {
	var errs [2]error
	group, ctx := errgroup.WithContext(ctx)
	for i, e := range []*end{a, b} {
		group.Go(func() error {
			errs[i] = step(ctx, e)
			return errs[i]
		})
	}
	first := group.Wait()
	if first == nil {
		return nil
	}
	// What only ended because the other side had failed is no news.
	for _, err := range errs {
		if err != nil && !errors.Is(err, first) && !errors.Is(err, context.Canceled) {
			return errors.Join(first, err)
		}
	}
	return first
}
