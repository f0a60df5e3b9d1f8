//go:build linux

package gateway

import (
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/netops/membership"
)

// echoes has the gateway's tunnels to the peer, and answers the echoes that reach it: from nodes in the overlay, from
// the peer's gateways in the tunnels, and outside both, from nodes and gateways that measure the path MTU to this one.
type echoes struct {
	log     *slog.Logger
	pod     netip.Addr // of this gateway
	sockets echo.Sockets
	nodes   *nodePaths
	wake    chan<- struct{} // triggers a pass
	claim   chan struct{}   // of size one: the peer has received echoes of a later pod of this gateway
	news    chan struct{}   // of size one: triggers a report
	own     succession      // of this pod
	// renewing is held by a tunnel that renews its session: concurrent renewals would select the same free address.
	renewing sync.Mutex
	derive   func(label string) [32]byte // a key that both ends of the tunnels have
	server   accepting                   // of the loop

	mu        sync.Mutex         // guards what follows, and the tunnels
	tunnels   []*peerTunnel      // by the number of the peer's gateway, less one
	several   bool               // this cluster has other gateways to the peer
	leaving   membership.Leaving // of this gateway
	peers     peerNodes
	endpoints peerEndpoints // if this is the client
	// probing is the socket outside overlay and tunnels; nil: none yet. Its list is not read while mu is held: who
	// closes a socket holds the list and waits for callbacks, which want mu.
	probing *echo.Socket
}

func newEchoes(log *slog.Logger, m *helper.Metrics, pod netip.Addr, node string, wake chan<- struct{}) *echoes {
	news := make(chan struct{}, 1)
	return &echoes{
		log: log, pod: pod, nodes: newNodePaths(m, node, news), wake: wake, claim: make(chan struct{}, 1), news: news,
		peers:     peerNodes{learned: newLearned(m.Ignored, peerNodesMost, peerNodeLife)},
		endpoints: peerEndpoints{learned: newLearned(m.Ignored, records.MaxPeerEndpoints, endpointLife)},
	}
}

// close ends the parts that depend on this process; the kernel's state stays.
func (g *echoes) close() {
	for _, t := range g.all() {
		t.size.Close()
	}
	g.sockets.Close() // no echo uses a device any more
	g.server.close()
	for _, t := range g.all() {
		if err := t.close(false); err != nil {
			t.log.Warn("close of the tunnel", "error", err)
		}
	}
}

// all returns all tunnels.
func (g *echoes) all() []*peerTunnel {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.tunnels)
}

// tunnel returns the tunnel of a number, from 1, and creates it if necessary.
func (g *echoes) tunnel(number int) *peerTunnel {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.tunnels) < number {
		g.tunnels = append(g.tunnels, newPeerTunnel(g, len(g.tunnels)+1))
	}
	return g.tunnels[number-1]
}

// keep removes all tunnels except the first ones, and reports whether others were open.
func (g *echoes) keep(first int) (removed bool, err error) {
	g.mu.Lock()
	gone := slices.Clone(g.tunnels[min(first, len(g.tunnels)):])
	g.tunnels = g.tunnels[:min(first, len(g.tunnels))]
	g.mu.Unlock()
	var errs []error
	for i, t := range gone {
		g.sockets.Drop(tunnelSocket(first + i + 1))
		removed = removed || t.device != nil
		errs = append(errs, t.close(true))
	}
	return removed, errors.Join(errs...)
}

// tunnelSocket returns the name of a tunnel's socket: "tunnel", "tunnel2".
func tunnelSocket(number int) string {
	return strings.TrimPrefix(netops.TunnelLink(number), netops.Prefix)
}

// apply answers and sends echoes as a view requires. It is called after a pass: the addresses exist.
func (g *echoes) apply(v view) error {
	g.update(v)
	_, overlay := g.sockets.Listen("overlay", netip.AddrPortFrom(v.peering.GatewayAddress(v.fabric.InternalCIDR(), v.id.Number), netops.EchoPort), helper.Limited(echo.Responder{Answer: g.answer}))
	probing, underlay := g.sockets.Listen("underlay", netip.AddrPortFrom(g.pod, netops.EchoPort), helper.Limited(echo.Responder{Accepts: g.knows}))
	g.mu.Lock()
	g.probing = probing
	g.mu.Unlock()
	errs := []error{overlay, underlay}
	open := slices.ContainsFunc(g.all(), func(t *peerTunnel) bool { return t.device != nil })
	for i := range v.own().Tunnels {
		t := g.tunnel(i + 1)
		local, remote := v.peering.TunnelAddresses(v.id.Number, i+1)
		socket, err := g.sockets.Listen(tunnelSocket(i+1), netip.AddrPortFrom(local.Addr(), netops.EchoPort), &echo.Responder{Answer: t.answer})
		switch {
		case err == nil:
			err = t.ask(socket, netip.AddrPortFrom(remote, netops.EchoPort))
		case open && t.device == nil: // it could not be opened, and others carry packets
			err = nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// update applies a new view.
func (g *echoes) update(v view) {
	g.nodes.update(v)
	g.mu.Lock()
	g.peers.update(v.peering.Peer.ExternalCIDR().Seen)
	g.endpoints.update(v)
	g.several = len(v.peering.Gateways) > 1
	g.mu.Unlock()
	for i := range v.own().Tunnels {
		g.tunnel(i+1).update(v, i+1, g.wake)
	}
}

// unused returns the tunnels that carry no packets of pods, by number, and why.
func (g *echoes) unused(own records.LocalGateway, mode records.GatewayMode) map[int]string {
	standings, reasons := make([]membership.Standing, len(own.Tunnels)), make([]string, len(own.Tunnels))
	for i := range own.Tunnels {
		standings[i], reasons[i] = g.tunnel(i + 1).standing()
	}
	unused := map[int]string{}
	for i, is := range membership.Unused(standings, mode == records.ActiveStandby) {
		if is {
			unused[i+1] = reasons[i]
		}
	}
	return unused
}

// answer returns the answer to an echo of a node. With several gateways, it also reports whether this one cannot
// forward.
func (g *echoes) answer(from netip.AddrPort, m echo.Message) echo.Content {
	c := g.nodes.answer(from, m)
	g.mu.Lock()
	defer g.mu.Unlock()
	c.Draining, c.NoWay = g.leaving.Announces()
	c.NoWay = c.NoWay || g.several && !membership.Forwards(g.members())
	return c
}

// learned returns the addresses from the peer: of its nodes, and of the server's nodes as endpoints.
func (g *echoes) learned() (nodes, endpoints []netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.peers.current(), g.endpoints.current()
}

// members returns the tunnels; g.mu is held.
func (g *echoes) members() []*membership.Member {
	all := make([]*membership.Member, len(g.tunnels))
	for i, t := range g.tunnels {
		all[i] = &t.Member
	}
	return all
}

// knows reports whether an address may measure the path MTU to this gateway: nodes of this cluster and, at the server,
// the source of the tunnel's packets, and who has announced the session of its echoes by WebSocket.
func (g *echoes) knows(from netip.AddrPort, m echo.Message) bool {
	serves := func(t *peerTunnel) bool { return t.serves(from.Addr()) }
	return g.nodes.send(from.Addr()) || slices.ContainsFunc(g.all(), serves) || g.server.allows(m.Session)
}

// underlay returns the socket outside overlay and tunnels; nil if there is none yet.
func (g *echoes) underlay() *echo.Socket { return g.sockets.All()["underlay"] }
