//go:build linux

package gateway

import (
	"log/slog"
	"net/netip"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/internal/helper/wakeup"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/netops/membership"
	"liqonet.io/liqonet/netops/pathmtu"
	"liqonet.io/liqonet/netops/tunnel"
)

// Parameters of a gateway's echoes to its peer: five a second, and fifty after a loss, so that a loss of two in a
// hundred shows in seconds.
const (
	gatewayEvery   = 20 * time.Millisecond
	gatewayCalm    = time.Second // a train each time, as each wake-up of a tunnel in a process has a cost
	gatewayTrain   = 5
	gatewayTimeout = 600 * time.Millisecond
	gatewayWindow  = int(health.LossSpan / gatewayEvery)
	// gatewayCalmOfSeveral is gatewayCalm if other tunnels could carry packets.
	gatewayCalmOfSeveral = 200 * time.Millisecond
)

// peerTunnel is a gateway's tunnel to a gateway of the peer: its device, the echoes between both gateways in it, and
// the path MTU outside it. Echoes measure round-trip time and loss, and carry the state of both gateways and of their
// nodes.
type peerTunnel struct {
	gateway *echoes // of this end
	log     *slog.Logger
	size    pathmtu.Meter  // of the path to the server, if this is the client
	wanted  *tunnel.Config // last configuration that the loop applied to the device; nil: unknown

	// The lock of the gateway's echoes guards what follows.
	device tunnel.Tunnel // nil: not open; the loop sets it, and reads it without the lock
	role   records.Role
	plain  bool           // the device has no encryption; set with it
	peer   *echo.Prober   // nil: none yet
	calm   time.Duration  // interval of its requests without loss
	source netip.AddrPort // source of the tunnel's packets; the zero value: none received
	path   echo.Path      // path to this gateway, from the peer's report
	membership.Member
	unused    string            // why no packets of pods are sent through it; "": they are
	sender    membership.Sender // the peer's gateway
	byNode    bool              // the client reaches this gateway at the address of a node
	far       farPods
	renewal   renewal
	carrier   carrier
	moved     time.Time // when the tunnel was last moved to another node
	endpoints []string  // in the record
	turn      int       // index of the next address to send
}

func newPeerTunnel(g *echoes, number int) *peerTunnel {
	t := &peerTunnel{gateway: g, log: g.log.With("peerGateway", number)}
	t.size.Changed = func() {
		t.sendNow()
		wakeup.Notify(g.news)
	}
	return t
}

// close ends the parts of the tunnel that depend on this process; with remove, all of it. The echoes end with their
// socket.
func (t *peerTunnel) close(remove bool) error {
	t.size.Close()
	t.gateway.mu.Lock()
	t.closeCarrier()
	t.gateway.mu.Unlock()
	if t.device == nil {
		return nil
	}
	return t.device.Close(remove)
}

// update applies a view to the tunnel of a number, from 1.
func (t *peerTunnel) update(v view, number int, wake chan<- struct{}) {
	t.gateway.mu.Lock()
	news := t.unused != v.unused[number]
	if t.role != v.peering.Role { // the peer's gateway is at another place
		t.far.Pods, t.far.at = membership.Pods{}, netip.AddrPort{}
	}
	t.role, t.unused, t.Wake = v.peering.Role, v.unused[number], nil
	t.endpoints = v.own().Tunnels[number-1].Endpoints
	carried := t.carrier.on()
	if t.carrier.update(v, number, t.gateway.derive) {
		t.closeCarrier()
	}
	if t.carrier.on() != carried {
		wakeup.Notify(wake) // the view has been without it
	}
	t.calm = gatewayCalm
	if len(v.own().Tunnels) > 1 {
		t.Wake, t.calm = wake, gatewayCalmOfSeveral
	}
	t.gateway.mu.Unlock()
	if news {
		t.sendNow()
	}
}

// standing returns the standing of the tunnel, and the reason for which it would not be used.
func (t *peerTunnel) standing() (membership.Standing, string) {
	t.gateway.mu.Lock()
	defer t.gateway.mu.Unlock()
	return t.Standing(), t.Reason()
}

// ask starts to probe the peer's gateway, or changes the address.
func (t *peerTunnel) ask(socket *echo.Socket, target netip.AddrPort) error {
	t.gateway.mu.Lock()
	defer t.gateway.mu.Unlock()
	switch {
	case t.peer != nil:
	case t.role == records.Client:
		t.renewal.due.Began(time.Now())
	default:
		t.renewal.answered(time.Now())
	}
	return echo.Aim(&t.peer, socket, echo.ProbeConfig{
		Target: target, Interval: gatewayEvery, Calm: t.calm, Train: gatewayTrain, Timeout: gatewayTimeout,
		Window: gatewayWindow, Span: health.LossSpan, Silence: health.EchoSilence,
		Content: t.content, OnReply: t.answeredBy, OnLost: t.missed, OnSilence: t.silent, Patience: membership.Patience,
	})
}

// sendNow sends the next echo to the peer immediately.
func (t *peerTunnel) sendNow() {
	t.gateway.mu.Lock()
	defer t.gateway.mu.Unlock()
	if t.peer != nil {
		t.peer.SendNow()
	}
}

// answer returns the answer to an echo of the peer's gateway.
func (t *peerTunnel) answer(_ netip.AddrPort, m echo.Message) echo.Content {
	path := plausible(t.gateway.nodes.ignored, m.Content.Path)
	t.gateway.mu.Lock()
	defer t.gateway.mu.Unlock()
	now := time.Now()
	if t.path != path {
		wakeup.Notify(t.gateway.news)
	}
	t.path, t.sender = path, membership.Sender{Echo: now, Unused: m.Content.Unused}
	t.renewal.due.Received(now)
	t.Announced(m.Content, now)
	t.received(m.Content, now)
	return t.toPeer(now)
}

// content returns the content of an echo to the peer.
func (t *peerTunnel) content() echo.Content {
	t.gateway.mu.Lock()
	defer t.gateway.mu.Unlock()
	c := t.toPeer(time.Now())
	c.Path, c.Unused = t.ownPath(), t.unused != ""
	return c
}

// toPeer returns the content of each message to the peer's gateway. With several gateways, it also reports whether no
// node reaches this one. The lock is held.
func (t *peerTunnel) toPeer(now time.Time) echo.Content {
	g := t.gateway
	c := g.nodes.name()
	c.Nodes = g.nodes.reaches()
	c.Draining, c.NoWay = g.leaving.Announces()
	c.NoWay = c.NoWay || g.several && !g.nodes.reach()
	c.Epoch, c.Newest = g.own.epoch.Load(), uint32(t.far.Latest(now))
	c.Endpoint, c.OwnNode = t.endpoint()
	return c
}

func (t *peerTunnel) answeredBy(m echo.Message, _ time.Duration) {
	t.gateway.mu.Lock()
	defer t.gateway.mu.Unlock()
	now := time.Now()
	t.renewal.answered(now)
	t.Answered(m.Content, now)
	t.received(m.Content, now)
}

// received handles the pods, nodes and endpoints in a message; the lock is held.
func (t *peerTunnel) received(c echo.Content, now time.Time) {
	g := t.gateway
	g.peers.learn(c.Node)
	own := membership.Epoch(g.own.epoch.Load())
	if own != 0 && membership.Epoch(c.Newest).Known(now) > own { // there is a later pod
		wakeup.Notify(g.claim)
	}
	t.Nodes = c.Nodes
	t.from(membership.Epoch(c.Epoch), now)
	t.learnEndpoint(c)
	membership.Compare(g.members(), now)
}

// endpoint returns the address for an echo: at the client, the one in use; at the server, if that is a node's, those of
// its live nodes in turn, with a flag for this gateway's own. A client of a server behind a load balancer gets no
// address, and a server gets none of a client: the echo of a client may have an address of the client's nodes, too.
// The lock is held.
func (t *peerTunnel) endpoint() (a netip.Addr, own bool) {
	switch {
	case t.gateway.endpoints.used:
		return t.source.Addr(), false
	case t.byNode && t.role == records.Server:
		t.turn++
		return t.gateway.nodes.endpoint(t.turn)
	}
	return netip.Addr{}, false
}

// learnEndpoint handles the address in an echo; the lock is held.
func (t *peerTunnel) learnEndpoint(c echo.Content) {
	t.byNode = t.gateway.nodes.have(c.Endpoint)
	if t.gateway.endpoints.learn(c.Endpoint) && c.OwnNode && t.far.Is(membership.Epoch(c.Epoch)) {
		t.enterBy(c.Endpoint)
	}
}

// missed handles lost echoes. A tunnel of which two consecutive trains are lost is not used if there are others: on a
// line that loses a third of the echoes, this does not happen by chance in minutes, as it would to one train in
// seconds.
func (t *peerTunnel) missed(consecutive int) {
	t.gateway.mu.Lock()
	defer t.gateway.mu.Unlock()
	now := time.Now()
	t.renewIfDue(now)
	t.carry(now)
	t.Missed(consecutive, 2*gatewayTrain, now)
}

// counted handles the number of bytes received from the peer.
func (t *peerTunnel) counted(bytes int64) {
	t.gateway.mu.Lock()
	defer t.gateway.mu.Unlock()
	now := time.Now()
	t.renewal.due.Counted(bytes, now)
	t.renewIfDue(now)
	t.carry(now)
}

// silent handles missing answers.
func (t *peerTunnel) silent() {
	t.gateway.mu.Lock()
	defer t.gateway.mu.Unlock()
	t.Silent(time.Now())
}

// measure measures the path MTU to the peer, once its address is known and unless WebSocket carries the packets. The
// client measures: a server may not be able to initiate.
func (t *peerTunnel) measure(underlay *echo.Socket, peer netip.AddrPort, carried bool) {
	if !peer.Addr().Is4() {
		return
	}
	t.gateway.mu.Lock()
	t.source = peer
	client := t.role == records.Client
	t.gateway.mu.Unlock()
	if !client {
		t.size.Forget()
	} else if underlay != nil && !carried {
		t.size.Measure(underlay, peer)
	}
}

// serves reports whether an address is the client's.
func (t *peerTunnel) serves(from netip.Addr) bool {
	t.gateway.mu.Lock()
	defer t.gateway.mu.Unlock()
	return t.role == records.Server && from == t.source.Addr()
}

// describe adds the measurements of the tunnel to a status.
func (t *peerTunnel) describe(s *records.TunnelStatus) {
	t.gateway.mu.Lock()
	defer t.gateway.mu.Unlock()
	if t.peer != nil {
		stats := t.peer.Stats()
		s.LastEcho, s.RTT = publish.Stamp(stats.LastReply), records.Duration(stats.RTT)
		s.Loss = health.Loss(stats.Missing, stats.Loss, time.Since(stats.LastLoss))
	}
	s.Path, s.Unused = pathRecord(t.path), t.unused
	if t.role == records.Client {
		s.Path = pathRecord(t.ownPath())
	}
}

// ownPath returns the path that this end has measured, if it is the client; the lock is held.
func (t *peerTunnel) ownPath() echo.Path {
	if t.carrier.on() {
		return t.carrier.path
	}
	return t.size.Path()
}
