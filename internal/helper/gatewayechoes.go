//go:build linux

package helper

import (
	"errors"
	"log/slog"
	"net/netip"

	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/echo"
)

// gatewayEchoes answer the echoes that reach a gateway: of nodes in the overlay, of the peer's gateway in the tunnel, and
// outside both, of those that measure the path MTU to here.
type gatewayEchoes struct {
	pod     netip.Addr // of this gateway
	sockets echoSockets
	nodes   *nodePaths
	tunnel  *tunnelEchoes
}

func newGatewayEchoes(log *slog.Logger, m *metrics, pod netip.Addr, node string) *gatewayEchoes {
	nodes := newNodePaths(m, node)
	return &gatewayEchoes{pod: pod, nodes: nodes, tunnel: newTunnelEchoes(log, m, nodes)}
}

func (g *gatewayEchoes) close() {
	g.tunnel.close()
	g.sockets.close()
}

// follow answers and asks as a view requires. It is called after a pass: the addresses exist.
func (g *gatewayEchoes) follow(v gatewayView) error {
	g.nodes.follow(v)
	g.tunnel.follow(v)
	own := v.own()
	t := own.Tunnels[0]
	_, overlay := g.sockets.listen("overlay", own.Address, limited(&echo.Responder{Answer: g.nodes.answer}))
	_, underlay := g.sockets.listen("underlay", g.pod, limited(&echo.Responder{Knows: g.knows}))
	inTunnel, err := g.sockets.listen("tunnel", t.Address.Addr(), &echo.Responder{Answer: g.tunnel.answer})
	if err := errors.Join(overlay, underlay, err); err != nil {
		return err
	}
	return g.tunnel.ask(inTunnel, netip.AddrPortFrom(t.PeerAddress, netops.EchoPort))
}

// limited is a responder that answers no more than all nodes of a cluster ask.
func limited(r *echo.Responder) *echo.Responder {
	r.Rate, r.Burst = netops.EchoesOfNodes, netops.EchoesOfNodes
	return r
}

// knows reports whether an address may measure the path MTU to here: nodes of this cluster and, at the server, the sender
// of the tunnel's packets.
func (g *gatewayEchoes) knows(from netip.AddrPort) bool {
	return g.tunnel.serves(from.Addr()) || g.nodes.send(from.Addr())
}

// measure measures the path MTU to the peer's gateway, whose packets come from that address.
func (g *gatewayEchoes) measure(peer netip.AddrPort) {
	g.tunnel.measure(g.sockets.all()["underlay"], peer)
}
