//go:build linux

package helper

import (
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
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

// tunnelEchoes are the echoes that two gateways exchange in their tunnel, and the path MTU outside it. They measure round
// trip and loss, and carry what both gateways tell each other of their nodes.
type tunnelEchoes struct {
	ignored *prometheus.CounterVec
	nodes   *nodePaths // of this cluster
	peers   *peerNodes
	renewal renewal
	size    pathSize // of the path to the server, where this is the client

	mu     sync.Mutex // guards what follows
	role   records.Role
	peer   *echo.Prober // nil: none yet
	sender netip.Addr   // of the tunnel's packets; the zero value: none have come
	path   echo.Path    // what the peer reports of its path to here
}

func newTunnelEchoes(log *slog.Logger, m *metrics, nodes *nodePaths) *tunnelEchoes {
	t := &tunnelEchoes{ignored: m.ignored, nodes: nodes, peers: newPeerNodes(m), renewal: renewal{log: log}}
	t.size.changed = t.hurry
	return t
}

// close ends the measuring of the path MTU; the echoes end with their socket.
func (t *tunnelEchoes) close() { t.size.close() }

func (t *tunnelEchoes) follow(v gatewayView) {
	t.peers.follow(v.peering.Peer.ExternalCIDR)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.role = v.peering.Role
}

// ask begins to probe the peer's gateway, or goes on with another address.
func (t *tunnelEchoes) ask(socket *echo.Socket, target netip.AddrPort) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.peer == nil {
		t.renewal.answered()
	}
	return aimProber(&t.peer, socket, echo.ProbeConfig{
		Target: target, Interval: gatewayEvery, Calm: gatewayCalm, Train: gatewayTrain, Timeout: gatewayTimeout,
		Window: gatewayWindow, Span: health.LossSpan, Silence: health.EchoSilence,
		Content: t.content, OnReply: t.answered, OnLost: func(int) { t.renewal.missed() },
	})
}

// hurry tells the peer at once what is new.
func (t *tunnelEchoes) hurry() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.peer != nil {
		t.peer.Hurry()
	}
}

// answer is the answer to an echo of the peer's gateway.
func (t *tunnelEchoes) answer(_ netip.AddrPort, m echo.Message) echo.Content {
	t.renewal.heard()
	t.peers.learn(m.Content.Node)
	path := plausible(t.ignored, m.Content.Path)
	t.mu.Lock()
	t.path = path
	t.mu.Unlock()
	return t.nodes.name()
}

// content is what an echo tells the peer.
func (t *tunnelEchoes) content() echo.Content {
	c := t.nodes.name()
	c.Path = t.size.known()
	return c
}

func (t *tunnelEchoes) answered(m echo.Message, _ time.Duration) {
	t.renewal.answered()
	t.peers.learn(m.Content.Node)
}

// measure measures the path MTU to the peer, once its address is known. The client asks: a server may not be able to
// begin.
func (t *tunnelEchoes) measure(underlay *echo.Socket, peer netip.AddrPort) {
	if !peer.Addr().Is4() {
		return
	}
	t.mu.Lock()
	t.sender = peer.Addr()
	client := t.role == records.Client
	t.mu.Unlock()
	if client && underlay != nil {
		t.size.follow(underlay, peer)
	}
}

// serves reports whether an address is the client's.
func (t *tunnelEchoes) serves(from netip.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.role == records.Server && from == t.sender
}

// describe adds to a status what is measured of the tunnel.
func (t *tunnelEchoes) describe(s *records.Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.peer != nil {
		stats := t.peer.Stats()
		s.LastEcho, s.RTT = stamp(stats.LastReply), records.Duration(stats.RTT)
		s.Loss = health.Loss(stats.Missing, stats.Loss, time.Since(stats.LastLoss))
	}
	s.Path = pathRecord(t.path)
	if t.role == records.Client {
		s.Path = pathRecord(t.size.known())
	}
}
