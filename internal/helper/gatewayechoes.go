//go:build linux

package helper

import (
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/echo"
)

// gatewayEchoes answer the echoes that reach a gateway: of nodes in the overlay, of the peer's gateways in the tunnels,
// and outside both, of those that measure the path MTU to here.
type gatewayEchoes struct {
	log     *slog.Logger
	pod     netip.Addr // of this gateway
	sockets echoSockets
	nodes   *nodePaths
	peers   *peerNodes
	wake    chan<- struct{} // calls for a pass
	own     succession      // of this pod
	// endpoints are those that the server has sent, where this is the client.
	endpoints *peerEndpoints
	renewing  sync.Mutex // of one tunnel at a time

	mu       sync.Mutex      // guards what follows
	tunnels  []*tunnelEchoes // by the number of the peer's gateway, less one
	several  bool            // this cluster has other gateways to the peer
	draining bool            // this one is about to end
	ending   time.Time       // since when it announces its end: that it has no way on; zero: it does not
}

func newGatewayEchoes(log *slog.Logger, m *metrics, pod netip.Addr, node string, wake chan<- struct{}) *gatewayEchoes {
	return &gatewayEchoes{
		log: log, pod: pod, nodes: newNodePaths(m, node), peers: newPeerNodes(m), wake: wake, own: succession{claim: make(chan struct{}, 1)},
		endpoints: newPeerEndpoints(m),
	}
}

func (g *gatewayEchoes) close() {
	for _, t := range g.all() {
		t.close()
	}
	g.sockets.close()
}

// all are the echoes of all tunnels.
func (g *gatewayEchoes) all() []*tunnelEchoes {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.tunnels)
}

// tunnel are the echoes of the tunnel of a number, from 1, which begin where there are none yet.
func (g *gatewayEchoes) tunnel(number int) *tunnelEchoes {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.tunnels) < number {
		g.tunnels = append(g.tunnels, newTunnelEchoes(g, len(g.tunnels)+1))
	}
	return g.tunnels[number-1]
}

// keep ends the echoes of all tunnels but the first ones.
func (g *gatewayEchoes) keep(first int) {
	g.mu.Lock()
	gone := slices.Clone(g.tunnels[min(first, len(g.tunnels)):])
	g.tunnels = g.tunnels[:min(first, len(g.tunnels))]
	g.mu.Unlock()
	for i, t := range gone {
		t.close()
		g.sockets.drop(tunnelSocket(first + i + 1))
	}
}

// tunnelSocket names the socket of a tunnel: "tunnel", "tunnel2".
func tunnelSocket(number int) string {
	return strings.TrimPrefix(netops.TunnelLink(number), netops.Prefix)
}

// follow answers and asks as a view requires. It is called after a pass: the addresses exist.
func (g *gatewayEchoes) follow(v gatewayView) error {
	g.heed(v)
	own := v.own()
	_, overlay := g.sockets.listen("overlay", own.Address, limited(echo.Responder{Answer: g.answer}))
	_, underlay := g.sockets.listen("underlay", g.pod, limited(echo.Responder{Accepts: g.knows}))
	errs := []error{overlay, underlay}
	for i, t := range own.Tunnels {
		echoes := g.tunnel(i + 1)
		socket, err := g.sockets.listen(tunnelSocket(i+1), t.Address.Addr(), &echo.Responder{Answer: echoes.answer})
		if err == nil {
			err = echoes.ask(socket, netip.AddrPortFrom(t.PeerAddress, netops.EchoPort))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// heed takes what a view says.
func (g *gatewayEchoes) heed(v gatewayView) {
	g.nodes.follow(v)
	g.peers.follow(v.peering.Peer.ExternalCIDR)
	g.endpoints.follow(v)
	g.mu.Lock()
	g.several = len(v.peering.Gateways) > 1
	g.mu.Unlock()
	for i := range v.own().Tunnels {
		g.tunnel(i+1).follow(v, i+1, g.wake)
	}
}

// unused are the tunnels that carry no packets of pods, by number, and why; none where there is one tunnel.
func (g *gatewayEchoes) unused(own records.LocalGateway, mode records.GatewayMode) map[int]string {
	if len(own.Tunnels) < 2 {
		return nil
	}
	stands, reasons := make([]standing, len(own.Tunnels)), make([]string, len(own.Tunnels))
	for i := range own.Tunnels {
		stands[i], reasons[i] = g.tunnel(i + 1).standing()
	}
	unused := map[int]string{}
	for i, is := range unusedOf(stands, mode) {
		if is {
			unused[i+1] = reasons[i]
		}
	}
	return unused
}

// answer is the answer to an echo of a node. Where there are other gateways, it reports whether this one has no way on.
// Tunnels have to be good for a moment, so that a peer cannot have nodes change their minds faster than that.
func (g *gatewayEchoes) answer(from netip.AddrPort, m echo.Message) echo.Content {
	c := g.nodes.answer(from, m)
	g.mu.Lock()
	defer g.mu.Unlock()
	c.Draining = g.draining
	forwards := func(t *tunnelEchoes) bool { s, _ := t.standing(); return s >= draining }
	c.NoWay = !g.ending.IsZero() || g.several && !slices.ContainsFunc(g.tunnels, forwards)
	return c
}

// toPeer is what each echo tells a gateway of the peer. Where there are other gateways, it says that no node reaches
// this one.
func (g *gatewayEchoes) toPeer() echo.Content {
	c := g.nodes.name()
	g.mu.Lock()
	defer g.mu.Unlock()
	c.Nodes = g.nodes.reaches()
	c.NoWay, c.Draining, c.Epoch = !g.ending.IsZero() || g.several && !g.nodes.reach(), g.draining, uint32(g.own.epoch)
	return c
}

// compare finds the tunnels to gateways that reach fewer nodes than another one does. A node that none reaches makes no
// difference.
func (g *gatewayEchoes) compare() {
	g.mu.Lock()
	defer g.mu.Unlock()
	most := uint32(0)
	for _, t := range g.tunnels {
		if s, _ := t.standing(); s == returned || s >= partial {
			most = max(most, t.nodes.Load())
		}
	}
	for _, t := range g.tunnels {
		if nodes := t.nodes.Load(); t.partial.note(nodes != 0 && nodes < most) {
			notify(g.wake)
		}
	}
}

// limited is a responder that answers no more than all nodes of a cluster ask, and to one address no more than twice
// what the kernel lets through of one node. Inside the overlay a node can use another one's address: it cannot use up
// the limit of that.
func limited(r echo.Responder) *echo.Responder {
	r.Rate, r.Burst, r.Each = netops.EchoesOfNodes, netops.EchoesOfNodes, 2*netops.EchoesOfNode
	return &r
}

// knows reports whether an address may measure the path MTU to here: nodes of this cluster and, at the server, the
// sender of the tunnel's packets.
func (g *gatewayEchoes) knows(from netip.AddrPort) bool {
	serves := func(t *tunnelEchoes) bool { return t.serves(from.Addr()) }
	return g.nodes.send(from.Addr()) || slices.ContainsFunc(g.all(), serves)
}

// underlay is the socket outside overlay and tunnels; nil: there is none yet.
func (g *gatewayEchoes) underlay() *echo.Socket { return g.sockets.all()["underlay"] }
