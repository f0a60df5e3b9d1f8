//go:build linux

package helper

import (
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/echo"
)

// How a gateway asks its peer: five times a second, and fifty times once something is lost, so that a loss of two in a
// hundred shows in seconds.
const (
	gatewayEvery   = 20 * time.Millisecond
	gatewayCalm    = time.Second // each time a train, as each awakening of a tunnel in a process costs
	gatewayTrain   = 5
	gatewayTimeout = 600 * time.Millisecond
	gatewayWindow  = int(health.LossSpan / gatewayEvery)
)

// gatewayEchoes are a gateway's echo sockets: they measure the tunnel and the size of the path outside it, and carry what
// gateways and nodes tell each other.
type gatewayEchoes struct {
	pod     netip.Addr // of this gateway
	size    pathSize   // of the way to the server, where this is the client
	peers   *peerNodes
	nodes   *nodePaths
	renewal renewal

	mu     sync.Mutex              // guards what follows
	open   map[string]*echo.Socket // in the overlay, in the tunnel, and in the underlay for the size of paths
	peer   *echo.Prober            // nil: none yet
	view   gatewayView
	sender netip.Addr // of the tunnel's packets; the zero value: none have come
	path   echo.Path  // what the peer says of its way to here
}

func newGatewayEchoes(log *slog.Logger, m *metrics, pod netip.Addr, node string) *gatewayEchoes {
	g := &gatewayEchoes{pod: pod, peers: newPeerNodes(m), nodes: newNodePaths(m, node), renewal: renewal{log: log}, open: map[string]*echo.Socket{}}
	g.size.changed = g.hurry
	return g
}

// hurry tells the peer at once what is new.
func (g *gatewayEchoes) hurry() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.peer != nil {
		g.peer.Hurry()
	}
}

func (g *gatewayEchoes) close() {
	g.size.close()
	for _, s := range g.sockets() {
		_ = s.Close() // a closed UDP socket has nothing left to lose
	}
}

// follow listens and asks as a view says. It is called after a pass: the addresses are there.
func (g *gatewayEchoes) follow(v gatewayView) error {
	g.mu.Lock()
	g.view = v
	g.mu.Unlock()
	g.nodes.follow(v.nodes)
	p := v.peering
	err := errors.Join(
		g.listen("overlay", p.GatewayAddress, &echo.Responder{Rate: netops.EchoesOfNodes, Burst: netops.EchoesOfNodes, Answer: g.nodes.answer}),
		g.listen("tunnel", p.Tunnel.Address.Addr(), &echo.Responder{Answer: g.fromPeer}),
		g.listen("underlay", g.pod, &echo.Responder{Rate: netops.EchoesOfNodes, Burst: netops.EchoesOfNodes, Knows: g.knows}))
	if err != nil {
		return err
	}
	return g.ask(netip.AddrPortFrom(p.Tunnel.PeerAddress, netops.EchoPort))
}

// ask begins to probe the peer's gateway, or goes on with another address.
func (g *gatewayEchoes) ask(target netip.AddrPort) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.peer == nil {
		g.renewal.heard()
	}
	return aimProber(&g.peer, g.open["tunnel"], echo.ProbeConfig{
		Target: target, Interval: gatewayEvery, Calm: gatewayCalm, Train: gatewayTrain, Timeout: gatewayTimeout,
		Window: gatewayWindow, Span: health.LossSpan, Silence: health.EchoSilence,
		Content: g.content, OnReply: g.answered, OnLost: func(int) { g.renewal.missed() },
	})
}

// listen opens a socket at an address unless it is open.
func (g *gatewayEchoes) listen(name string, a netip.Addr, r *echo.Responder) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[name] != nil {
		return nil
	}
	s, err := echo.Listen(echo.Config{Local: netip.AddrPortFrom(a, netops.EchoPort), Responder: r})
	if err == nil {
		g.open[name] = s
	}
	return err
}

// sockets are those that are open.
func (g *gatewayEchoes) sockets() map[string]*echo.Socket {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.open)
}

// current is the view as it was followed last.
func (g *gatewayEchoes) current() gatewayView {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.view
}

// fromPeer answers the peer's gateway and learns from it.
func (g *gatewayEchoes) fromPeer(_ netip.AddrPort, m echo.Message) echo.Content {
	v := g.current()
	g.peers.learn(m.Content.Node, v.peering.Peer.ExternalCIDR)
	g.mu.Lock()
	g.path = plausible(g.peers.ignored, m.Content.Path)
	g.mu.Unlock()
	return g.nodes.name(v.fabric.ExternalCIDR)
}

// content is what an echo tells the peer.
func (g *gatewayEchoes) content() echo.Content {
	c := g.nodes.name(g.current().fabric.ExternalCIDR)
	c.Path = g.size.known()
	return c
}

func (g *gatewayEchoes) answered(m echo.Message, _ time.Duration) {
	g.peers.learn(m.Content.Node, g.current().peering.Peer.ExternalCIDR)
	g.renewal.heard()
}

// measure has the way to the peer measured, once it is known where that is. The client asks: a server may not be
// able to begin.
func (g *gatewayEchoes) measure(v gatewayView, peer netip.AddrPort) {
	if !peer.Addr().Is4() {
		return
	}
	g.mu.Lock()
	g.sender = peer.Addr()
	socket := g.open["underlay"]
	g.mu.Unlock()
	if v.peering.Role == records.Client && socket != nil {
		g.size.follow(socket, peer)
	}
}

// knows reports whether somebody may measure the way to here: nodes of this cluster and, at the server, who sends
// the tunnel's packets.
func (g *gatewayEchoes) knows(from netip.AddrPort) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.view.peering.Role == records.Server && from.Addr() == g.sender {
		return true
	}
	return slices.ContainsFunc(g.view.nodes, func(n reportedNode) bool {
		return n.OverlaySources[g.view.peering.Name] == from.Addr()
	})
}

// describe adds to a status what the echoes say.
func (g *gatewayEchoes) describe(s *records.Status, v gatewayView) {
	s.Nodes = g.nodes.statuses(v.peering.Name)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.peer != nil {
		stats := g.peer.Stats()
		s.LastEcho, s.RTT = stamp(stats.LastReply), records.Duration(stats.RTT)
		s.Loss = health.Loss(stats.Missing, stats.Loss, time.Since(stats.LastLoss))
	}
	s.Path = pathRecord(g.path)
	if v.peering.Role == records.Client {
		s.Path = pathRecord(g.size.known())
	}
}
