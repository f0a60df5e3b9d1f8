//go:build linux

package helper

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

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
	// gatewayCalmOfSeveral is gatewayCalm where other tunnels could carry packets.
	gatewayCalmOfSeveral = 200 * time.Millisecond
)

// tunnelEchoes are the echoes that two gateways exchange in their tunnel, and the path MTU outside it. They measure
// round trip and loss, and carry what both gateways tell each other of their nodes and of themselves.
type tunnelEchoes struct {
	gateway *gatewayEchoes // of this end
	renewal renewal
	size    pathSize      // of the path to the server, where this is the client
	nodes   atomic.Uint32 // that the far end reaches; zero: not known
	partial held          // others reach more

	mu     sync.Mutex // guards what follows
	role   records.Role
	peer   *echo.Prober   // nil: none yet
	calm   time.Duration  // between its requests while nothing is lost
	sender netip.AddrPort // of the tunnel's packets; the zero value: none have come
	path   echo.Path      // what the peer reports of its path to here
	member
	unused    string    // why no packets of pods are sent here; "": they are
	asked     time.Time // when the far end's last echo came; zero: none has
	farIdle   bool      // the far end says that it sends none
	byNode    bool      // the client reaches this gateway at the address of a node
	far       farPods
	moved     time.Time // when the tunnel was to enter by another node last
	endpoints []string  // in the record
	turn      int       // of the address that is named next
}

func newTunnelEchoes(g *gatewayEchoes, number int) *tunnelEchoes {
	t := &tunnelEchoes{gateway: g, renewal: renewal{log: g.log.With("peerGateway", number)}}
	t.size.changed = t.hurry
	return t
}

// close ends the measuring of the path MTU; the echoes end with their socket.
func (t *tunnelEchoes) close() { t.size.close() }

// follow takes what a view says of the tunnel of a number, from 1.
func (t *tunnelEchoes) follow(v gatewayView, number int, wake chan<- struct{}) {
	t.mu.Lock()
	news := t.unused != v.unused[number]
	if t.role != v.peering.Role { // the far end is found elsewhere
		t.far.latest, t.far.at = 0, netip.AddrPort{}
	}
	t.role, t.unused, t.wake = v.peering.Role, v.unused[number], nil
	t.endpoints = v.own().Tunnels[number-1].Endpoints
	t.calm = gatewayCalm
	if len(v.own().Tunnels) > 1 {
		t.wake, t.calm = wake, gatewayCalmOfSeveral
	}
	peer, calm := t.peer, t.calm
	t.mu.Unlock()
	if peer != nil {
		peer.SetCalm(calm)
	}
	if news {
		t.hurry()
	}
}

// standing is what the tunnel can be used for, and why it would not be used.
func (t *tunnelEchoes) standing() (standing, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stands == usable && t.partial.is.Load() {
		return partial, "other gateways reach more nodes"
	}
	return t.stands, t.reason()
}

// ask begins to probe the peer's gateway, or goes on with another address.
func (t *tunnelEchoes) ask(socket *echo.Socket, target netip.AddrPort) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.peer == nil {
		t.renewal.answered()
	}
	return aimProber(&t.peer, socket, echo.ProbeConfig{
		Target: target, Interval: gatewayEvery, Calm: t.calm, Train: gatewayTrain, Timeout: gatewayTimeout,
		Window: gatewayWindow, Span: health.LossSpan, Silence: health.EchoSilence,
		Content: t.content, OnReply: t.answeredBy, OnLost: t.missed, OnSilence: t.silent, Patience: memberPatience,
	})
}

// hurry tells the peer at once what is new.
func (t *tunnelEchoes) hurry() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.peer != nil {
		t.peer.SendNow()
	}
}

// answer is the answer to an echo of the peer's gateway.
func (t *tunnelEchoes) answer(_ netip.AddrPort, m echo.Message) echo.Content {
	t.renewal.heard()
	t.gateway.peers.learn(m.Content.Node)
	path := plausible(t.gateway.nodes.ignored, m.Content.Path)
	t.mu.Lock()
	t.path, t.asked, t.farIdle = path, time.Now(), m.Content.Unused
	t.says(m.Content)
	t.from(epoch(m.Content.Epoch))
	t.locates(m.Content)
	newest := t.newest()
	endpoint, own := t.endpoint()
	t.mu.Unlock()
	t.nodes.Store(m.Content.Nodes)
	t.gateway.compare()
	t.gateway.own.received(epoch(m.Content.Newest))
	c := t.gateway.toPeer()
	c.Newest, c.Endpoint, c.OwnNode = newest, endpoint, own
	return c
}

// content is what an echo tells the peer.
func (t *tunnelEchoes) content() echo.Content {
	c := t.gateway.toPeer()
	c.Path = t.size.known()
	t.mu.Lock()
	defer t.mu.Unlock()
	c.Unused, c.Newest = t.unused != "", t.newest()
	c.Endpoint, c.OwnNode = t.endpoint()
	return c
}

func (t *tunnelEchoes) answeredBy(m echo.Message, _ time.Duration) {
	t.renewal.answered()
	t.gateway.peers.learn(m.Content.Node)
	t.gateway.own.received(epoch(m.Content.Newest))
	t.nodes.Store(m.Content.Nodes)
	defer t.gateway.compare()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answered(m.Content)
	t.from(epoch(m.Content.Epoch))
	t.locates(m.Content)
}

// endpoint is the address that an echo has: at the client, the one in use; at the server, if that is a node's, those of
// its live nodes in turn, of which one is this gateway's own. Of a server behind a load balancer the client learns no
// address, and of a client the server never: an echo may have an address of the client's nodes, too. t.mu is held.
func (t *tunnelEchoes) endpoint() (a netip.Addr, own bool) {
	switch {
	case t.gateway.endpoints.asks():
		return t.sender.Addr(), false
	case t.byNode && t.role == records.Server:
		t.turn++
		return t.gateway.nodes.endpoint(t.turn)
	}
	return netip.Addr{}, false
}

// locates takes the address of an echo; t.mu is held.
func (t *tunnelEchoes) locates(c echo.Content) {
	t.byNode = t.gateway.nodes.have(c.Endpoint)
	if t.gateway.endpoints.learn(c.Endpoint) && c.OwnNode && epoch(c.Epoch) == t.far.latest {
		t.enterBy(c.Endpoint)
	}
}

// missed notes that echoes are lost. A tunnel of which two trains in a row are lost is not used where there are others:
// on a line that loses a third of the echoes, this does not happen by chance in minutes, as it would to one train in
// seconds.
func (t *tunnelEchoes) missed(consecutive int) {
	t.renewal.missed()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.member.missed(consecutive, 2*gatewayTrain)
}

// silent notes that answers stay away.
func (t *tunnelEchoes) silent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.member.silent()
}

// measure measures the path MTU to the peer, once its address is known. The client asks: a server may not be able to
// begin.
func (t *tunnelEchoes) measure(underlay *echo.Socket, peer netip.AddrPort) {
	if !peer.Addr().Is4() {
		return
	}
	t.mu.Lock()
	t.sender = peer
	client := t.role == records.Client
	t.mu.Unlock()
	if !client {
		t.size.forget()
	} else if underlay != nil {
		t.size.follow(underlay, peer)
	}
}

// serves reports whether an address is the client's.
func (t *tunnelEchoes) serves(from netip.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.role == records.Server && from == t.sender.Addr()
}

// describe adds to a status what is measured of the tunnel.
func (t *tunnelEchoes) describe(s *records.TunnelStatus) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.peer != nil {
		stats := t.peer.Stats()
		s.LastEcho, s.RTT = stamp(stats.LastReply), records.Duration(stats.RTT)
		s.Loss = health.Loss(stats.Missing, stats.Loss, time.Since(stats.LastLoss))
	}
	s.Path, s.Unused = pathRecord(t.path), t.unused
	if t.role == records.Client {
		s.Path = pathRecord(t.size.known())
	}
}
