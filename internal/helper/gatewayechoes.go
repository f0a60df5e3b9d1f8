//go:build linux

package helper

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/echo"
)

// How a gateway asks its peer.
const (
	gatewayEvery   = 200 * time.Millisecond
	gatewayCalm    = time.Second // while none of the window is missing: each echo wakes a tunnel of a process, twice
	gatewayTimeout = 600 * time.Millisecond
	gatewayWindow  = 25 // requests from which loss and round trip are taken: 5 s of trouble
	// gatewayPatience is how many answers may be missing before the tunnel is renewed.
	gatewayPatience = 4
	// renewEvery is the least time between two renewals without an answer in between.
	renewEvery = 5 * time.Second
	renewLimit = 10 * time.Second // how long one may take
	// peerNodeLife is how long an address that the peer named is good; peerNodesMost, how many nodes are told.
	peerNodeLife  = 10 * time.Second
	peerNodesMost = 8
	// peerNodesKept bounds how many addresses that the peer named are remembered: it names ten in a second.
	peerNodesKept = 128
)

// gatewayEchoes measure the tunnel, renew it when it is silent, gather what nodes tell of their paths, and
// exchange with the peer addresses of nodes that answer probes.
type gatewayEchoes struct {
	log     *slog.Logger
	ignored *prometheus.CounterVec
	pod     netip.Addr // of this gateway

	overlay, tunnel *echo.Socket // nil: not open; changed by the loop alone, with mu held
	underlay        *echo.Socket // for the size of paths; as above
	size            pathSize     // of the way to the server, where this is the client

	mu      sync.Mutex                  // guards what follows
	renew   func(context.Context) error // of the tunnel; nil: there is none yet
	peer    *echo.Prober                // nil: none yet
	view    gatewayView
	nodes   map[netip.Addr]nodePath  // by internal address
	named   map[netip.Addr]time.Time // the peer's nodes as seen here: when they were named last
	told    []netip.Addr             // those of them that this cluster's nodes are told
	turn    int                      // of the address that is named to the peer next
	renewed time.Time                // zero: not since the last answer
	sender  netip.Addr               // of the tunnel's packets; the zero value: none have come
	path    echo.Path                // what the peer says of its way to here
}

// nodePath is what a node's last echo said.
type nodePath struct {
	echo, proof   time.Time // zero: none
	rtt, proofRTT time.Duration
	path          echo.Path // of the way to here, outside the overlay
}

func newGatewayEchoes(log *slog.Logger, m *metrics, pod netip.Addr) *gatewayEchoes {
	g := &gatewayEchoes{log: log, ignored: m.ignored, pod: pod, nodes: map[netip.Addr]nodePath{}, named: map[netip.Addr]time.Time{}}
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
	for _, s := range []*echo.Socket{g.overlay, g.tunnel, g.underlay} {
		if s != nil {
			_ = s.Close() // a closed UDP socket has nothing left to lose
		}
	}
}

// follow listens and asks as a view says. It is called after a pass: the addresses are there.
func (g *gatewayEchoes) follow(v gatewayView) error {
	g.mu.Lock()
	g.view = v
	for a := range g.nodes {
		if !slices.ContainsFunc(v.nodes, func(n reportedNode) bool { return n.Internal == a }) {
			delete(g.nodes, a)
		}
	}
	g.mu.Unlock()
	p := v.peering
	err := errors.Join(
		g.reopen(&g.overlay, p.GatewayAddress, &echo.Responder{Rate: netops.EchoesOfNodes, Burst: netops.EchoesOfNodes, Answer: g.fromNode}),
		g.reopen(&g.tunnel, p.Tunnel.Address.Addr(), &echo.Responder{Answer: g.fromPeer}),
		g.reopen(&g.underlay, g.pod, &echo.Responder{Rate: netops.EchoesOfNodes, Burst: netops.EchoesOfNodes, Knows: g.knows}))
	if err != nil {
		return err
	}
	return g.ask(netip.AddrPortFrom(p.Tunnel.PeerAddress, netops.EchoPort))
}

// ask begins to probe the peer's gateway, or goes on with another address.
func (g *gatewayEchoes) ask(target netip.AddrPort) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.peer != nil {
		return g.peer.SetTarget(target)
	}
	var err error
	g.peer, err = g.tunnel.Probe(echo.ProbeConfig{
		Target: target, Interval: gatewayEvery, Calm: gatewayCalm, Timeout: gatewayTimeout, Window: gatewayWindow,
		Content: g.content, OnReply: g.answered, OnLost: g.lost,
	})
	return err
}

// useTunnel says how the tunnel is renewed.
func (g *gatewayEchoes) useTunnel(renew func(context.Context) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.renew = renew
}

// reopen opens a socket at an address unless it is open.
func (g *gatewayEchoes) reopen(s **echo.Socket, a netip.Addr, r *echo.Responder) error {
	if *s != nil {
		return nil
	}
	opened, err := echo.Listen(echo.Config{Local: netip.AddrPortFrom(a, netops.EchoPort), Responder: r})
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	*s = opened
	return nil
}

// sockets are those that are open.
func (g *gatewayEchoes) sockets() map[string]*echo.Socket {
	g.mu.Lock()
	defer g.mu.Unlock()
	open := map[string]*echo.Socket{"overlay": g.overlay, "tunnel": g.tunnel, "underlay": g.underlay}
	maps.DeleteFunc(open, func(_ string, s *echo.Socket) bool { return s == nil })
	return open
}

// fromNode notes what a node of this cluster says of its path.
func (g *gatewayEchoes) fromNode(from netip.AddrPort, m echo.Message) echo.Content {
	r := m.Content.Report
	if r.Internal != from.Addr() {
		return echo.Content{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	path := nodePath{echo: now, rtt: r.OverlayRTT, path: g.plausible(m.Content.Path)}
	if r.Proven {
		path.proof, path.proofRTT = now.Add(-r.ProofAge), r.ProofRTT
	}
	if _, known := g.nodes[r.Internal]; known || slices.ContainsFunc(g.view.nodes, func(n reportedNode) bool { return n.Internal == r.Internal }) {
		g.nodes[r.Internal] = path
	}
	return echo.Content{}
}

// fromPeer answers the peer's gateway and learns from it.
func (g *gatewayEchoes) fromPeer(_ netip.AddrPort, m echo.Message) echo.Content {
	g.learn(m.Content.Node)
	g.mu.Lock()
	g.path = g.plausible(m.Content.Path)
	g.mu.Unlock()
	return g.nameNode()
}

// content is what an echo tells the peer.
func (g *gatewayEchoes) content() echo.Content {
	c := g.nameNode()
	c.Path = g.size.known()
	return c
}

// plausible returns what others say of a path if it can be true, else nothing.
func (g *gatewayEchoes) plausible(p echo.Path) echo.Path {
	if p.Size != 0 && p.Size < echo.LeastPacket {
		g.ignored.WithLabelValues("size of a path").Inc()
		return echo.Path{}
	}
	return p
}

// measure has the way to the peer measured, once it is known where that is. The client asks: a server may not be
// able to begin.
func (g *gatewayEchoes) measure(v gatewayView, peer netip.AddrPort) {
	if !peer.Addr().Is4() {
		return
	}
	g.mu.Lock()
	g.sender = peer.Addr()
	socket := g.underlay
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

func (g *gatewayEchoes) answered(m echo.Message, _ time.Duration) {
	g.learn(m.Content.Node)
	g.mu.Lock()
	g.renewed = time.Time{}
	g.mu.Unlock()
}

// learn notes a node of the peer, if the peer may name it: an address of the nodes' half of its external CIDR.
func (g *gatewayEchoes) learn(real netip.Addr) {
	if !real.IsValid() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	external := g.view.peering.Peer.ExternalCIDR
	if !cidr.Lower(external.Real).Contains(real) {
		g.ignored.WithLabelValues("address of no node").Inc()
		return
	}
	seen := cidr.Swap(real, cidr.Lower(external.Seen))
	if _, known := g.named[seen]; !known && len(g.named) >= peerNodesKept {
		maps.DeleteFunc(g.named, func(_ netip.Addr, at time.Time) bool { return time.Since(at) > peerNodeLife })
		if len(g.named) >= peerNodesKept {
			g.ignored.WithLabelValues("too many addresses").Inc()
			return
		}
	}
	g.named[seen] = time.Now()
}

// nameNode names one live node of this cluster to the peer, each time another one: of the first peerNodesMost, so
// that each is named again before its name is too old.
func (g *gatewayEchoes) nameNode() echo.Content {
	g.mu.Lock()
	defer g.mu.Unlock()
	var live []netip.Addr
	for _, n := range g.view.nodes {
		if len(live) < peerNodesMost && time.Since(g.nodes[n.Internal].echo) < freshNodeEcho {
			live = append(live, n.Internal)
		}
	}
	if len(live) == 0 {
		return echo.Content{}
	}
	g.turn = (g.turn + 1) % len(live)
	return echo.Content{Node: cidr.Swap(live[g.turn], cidr.Lower(g.view.fabric.ExternalCIDR))}
}

// lost renews the tunnel when the peer stays silent: a new handshake at once instead of WireGuard's own timers.
func (g *gatewayEchoes) lost(consecutive int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if consecutive < gatewayPatience || g.renew == nil || time.Since(g.renewed) < renewEvery {
		return
	}
	g.renewed = time.Now()
	renew := g.renew
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), renewLimit)
		defer cancel()
		if err := renew(ctx); err != nil {
			g.log.Warn("renew the tunnel", "error", err)
		}
	}()
}

// peerNodes returns nodes of the peer for this cluster's nodes to probe. One that goes on being named stays.
func (g *gatewayEchoes) peerNodes() []netip.Addr {
	g.mu.Lock()
	defer g.mu.Unlock()
	alive := func(a netip.Addr) bool { at, ok := g.named[a]; return ok && time.Since(at) < peerNodeLife }
	g.told = slices.DeleteFunc(slices.Clone(g.told), func(a netip.Addr) bool { return !alive(a) })
	for a := range g.named {
		if len(g.told) < peerNodesMost && alive(a) && !slices.Contains(g.told, a) {
			g.told = append(g.told, a)
		}
	}
	slices.SortFunc(g.told, netip.Addr.Compare)
	return g.told
}

// describe adds to a status what the echoes say.
func (g *gatewayEchoes) describe(s *records.Status, v gatewayView) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.peer != nil {
		stats := g.peer.Stats()
		s.LastEcho, s.RTT, s.Loss = stamp(stats.LastReply), records.Duration(stats.RTT), stats.Loss
	}
	s.Path = pathRecord(g.path)
	if v.peering.Role == records.Client {
		s.Path = pathRecord(g.size.known())
	}
	for _, n := range v.nodes {
		p := g.nodes[n.Internal]
		s.Nodes = append(s.Nodes, records.NodeStatus{
			Name: n.Name, LastEcho: stamp(p.echo), LastProof: stamp(p.proof),
			RTT: records.Duration(p.rtt), ProofRTT: records.Duration(p.proofRTT),
			Path: pathRecord(p.path), Drift: n.Drift, Refused: n.Refused[v.peering.Name],
		})
	}
}

func pathRecord(p echo.Path) records.PathSize { return records.PathSize{Asked: p.Asked, MTU: p.Size} }
