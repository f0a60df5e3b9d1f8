//go:build linux

package node

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/helper/wakeup"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/netops/kernel"
	"liqonet.io/liqonet/netops/membership"
)

// probes measure a node's paths: to each gateway through the overlay and, to verify the whole path, to a node of
// each peer. The echoes themselves carry the results to the gateway.
type probes struct {
	news chan struct{}   // of size one: a witness report of this node has changed
	wake chan<- struct{} // triggers a pass

	sockets echo.Sockets // one, at the internal address

	mu       sync.Mutex // guards what follows
	internal netip.Addr
	paths    map[gatewayKey]*gatewayProbes
}

// gatewayKey is a gateway at an address.
type gatewayKey struct {
	id      records.GatewayID
	address netip.Addr // inside the overlay
}

func (v view) key(p records.Peering, id records.GatewayID) gatewayKey {
	return gatewayKey{id, p.GatewayAddress(v.fabric.InternalCIDR(), id.Number)}
}

func newProbes(wake chan<- struct{}) *probes {
	return &probes{news: make(chan struct{}, 1), wake: wake, paths: map[gatewayKey]*gatewayProbes{}}
}

func (n *probes) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.end()
}

// end is close with n.mu held.
func (n *probes) end() {
	for key := range n.paths {
		n.drop(key)
	}
	n.sockets.Close()
}

// drop ends the probes of a gateway; n.mu is held.
func (n *probes) drop(key gatewayKey) {
	n.paths[key].stop()
	delete(n.paths, key)
	wakeup.Notify(n.news)
}

// update probes the gateways and peers of a view. It is called after a pass: the internal address exists.
func (n *probes) update(v view, internal netip.Addr) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(v.Peerings) == 0 || internal != n.internal {
		n.end()
	}
	if len(v.Peerings) == 0 {
		return nil
	}
	socket, err := n.sockets.Listen("node", netip.AddrPortFrom(internal, netops.EchoPort), helper.Limited(echo.Responder{}))
	if err != nil {
		return err
	}
	n.internal = internal
	wanted := map[gatewayKey]bool{}
	var errs []error
	for _, p := range v.Peerings {
		for _, id := range p.GatewayIDs() {
			gateway, ok := v.gateways[id]
			if !ok {
				continue
			}
			key := v.key(p, id)
			wanted[key] = true
			if err := n.probe(socket, key, p, v, gateway); err != nil {
				errs = append(errs, fmt.Errorf("probe gateway %s: %w", id, err))
			}
		}
	}
	for key := range n.paths {
		if !wanted[key] {
			n.drop(key)
		}
	}
	return errors.Join(errs...)
}

// unused returns the gateways that carry no packets of pods: in each peering with several, those that are worse than
// others.
func (n *probes) unused(v view) map[records.GatewayID]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	unused := map[records.GatewayID]bool{}
	for _, p := range v.Peerings {
		standings := make([]membership.Standing, len(p.Gateways))
		for i, id := range p.GatewayIDs() {
			if probes := n.paths[v.key(p, id)]; probes != nil && v.located(id) {
				standings[i] = probes.standing()
			}
		}
		for i, is := range membership.Unused(standings, *p.Settings.Complete().GatewayMode == records.ActiveStandby) {
			if is {
				unused[records.GatewayID{Peering: p.Name, Number: i + 1}] = true
			}
		}
	}
	return unused
}

// probe probes a gateway, and through it nodes of the peer with messages of full size; n.mu is held.
func (n *probes) probe(socket *echo.Socket, key gatewayKey, p records.Peering, v view, gateway records.Gateway) error {
	size := p.MTU - echoHeaders
	if old := n.paths[key]; old != nil && old.size != size {
		n.drop(key)
	}
	if n.paths[key] == nil {
		n.paths[key] = newGatewayProbes(cidr.Offset(v.fabric.InternalCIDR(), n.internal), size, n.news)
	}
	probes := n.paths[key]
	var way echo.Route
	var err error
	if len(p.Gateways) > 1 {
		probes.setUse(v.unused[key.id], n.wake)
		way, err = kernel.RouteBy(p.OverlayID(key.id.Number))
	} else {
		probes.setUse(false, nil)
	}
	return errors.Join(err, probes.outside.Measure(gateway.PodIP), probes.update(socket, key.address, gateway.PeerNodes, way))
}
