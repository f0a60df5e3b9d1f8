//go:build linux

package helper

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/echo"
)

// How often a node asks.
const (
	overlayEvery = time.Second // its gateways
	// proofEvery is for one node of each peer, with packets of the path's full size.
	proofEvery = 2 * time.Second
)

// echoHeaders is what stands before an echo in its packet: IP 20, UDP 8.
const echoHeaders = 28

// nodeProbes measure a node's paths: to each gateway through the overlay and, as the proof of the whole path,
// to a node of each peer. What they find travels to the gateway in the echoes themselves.
type nodeProbes struct {
	news chan struct{} // of size one: what this node witnesses has changed

	mu       sync.Mutex // guards what follows
	internal netip.Addr
	socket   *echo.Socket // nil: not open
	peers    map[string]*peerProbes
}

// peerProbes are those of one peering.
type peerProbes struct {
	internal netip.Addr
	size     int
	overlay  *echo.Prober
	gateway  sizeSocket

	mu      sync.Mutex
	proof   *echo.Prober // nil: no node of the peer is known
	targets []netip.Addr
	target  int       // index of the one that is asked
	proven  time.Time // last answer of any of them; zero: none
	missed  bool      // the last proof was lost
	rtt     time.Duration
	witness
}

func newNodeProbes() *nodeProbes {
	return &nodeProbes{news: make(chan struct{}, 1), peers: map[string]*peerProbes{}}
}

func (n *nodeProbes) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.end()
}

// end is close with n.mu held.
func (n *nodeProbes) end() {
	for name := range n.peers {
		n.drop(name)
	}
	if n.socket != nil {
		_ = n.socket.Close() // a closed UDP socket has nothing left to lose
		n.socket = nil
	}
}

// drop ends the probes of a peering; n.mu is held.
func (n *nodeProbes) drop(name string) {
	n.peers[name].stop()
	delete(n.peers, name)
	notify(n.news)
}

// sockets are those that are open.
func (n *nodeProbes) sockets() map[string]*echo.Socket {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.socket == nil {
		return nil
	}
	return map[string]*echo.Socket{"node": n.socket}
}

// follow asks the gateways and peers of a view. It is called after a pass: the internal address is there.
func (n *nodeProbes) follow(v nodeView, internal netip.Addr) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(v.peerings) == 0 || internal != n.internal {
		n.end()
	}
	if len(v.peerings) == 0 {
		return nil
	}
	if n.socket == nil {
		socket, err := echo.Listen(echo.Config{Local: netip.AddrPortFrom(internal, netops.EchoPort), Responder: &echo.Responder{}})
		if err != nil {
			return err
		}
		n.socket, n.internal = socket, internal
	}
	wanted := map[string]bool{}
	var errs []error
	for _, p := range v.peerings {
		gateway, ok := v.gateways[p.Name]
		if !ok {
			continue
		}
		wanted[p.Name] = true
		size := p.MTU - echoHeaders
		if old := n.peers[p.Name]; old != nil && old.size != size {
			n.drop(p.Name)
		}
		if n.peers[p.Name] == nil {
			n.peers[p.Name] = newPeerProbes(internal, size, n.news)
		}
		probes := n.peers[p.Name]
		err := errors.Join(probes.gateway.follow(gateway.PodIP), probes.follow(n.socket, p.GatewayAddress, gateway.PeerNodes))
		if err != nil {
			errs = append(errs, fmt.Errorf("probe peering %q: %w", p.Name, err))
		}
	}
	for name := range n.peers {
		if !wanted[name] {
			n.drop(name)
		}
	}
	return errors.Join(errs...)
}

func newPeerProbes(internal netip.Addr, size int, news chan<- struct{}) *peerProbes {
	p := &peerProbes{internal: internal, size: size, witness: witness{news: news}}
	p.gateway.size.changed = p.hurry
	return p
}

// hurry tells the gateway at once what is new.
func (p *peerProbes) hurry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.overlay != nil {
		p.overlay.Hurry()
	}
}

func (p *peerProbes) stop() {
	_ = p.gateway.close() // a closed UDP socket has nothing left to lose
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, prober := range []*echo.Prober{p.overlay, p.proof} {
		if prober != nil {
			prober.Stop()
		}
	}
}

// follow begins to ask, or goes on with other addresses.
func (p *peerProbes) follow(socket *echo.Socket, gateway netip.Addr, targets []netip.Addr) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := aimProber(&p.overlay, socket, echo.ProbeConfig{
		Target: netip.AddrPortFrom(gateway, netops.EchoPort), Interval: overlayEvery,
		Content: p.content, OnReply: p.gatewayAnswered, OnLost: p.gatewayMissed,
	})
	if err != nil || len(targets) == 0 {
		return err
	}
	p.targets = targets
	p.target = int(p.internal.As4()[3]) % len(targets) // nodes spread over the peer's
	return aimProber(&p.proof, socket, echo.ProbeConfig{
		Target: p.aim(), Interval: proofEvery, Size: p.size, OnReply: p.answered, OnLost: p.lost,
	})
}

// aimProber begins to ask as a configuration says; a prober that has begun goes on with its target.
func aimProber(p **echo.Prober, socket *echo.Socket, c echo.ProbeConfig) (err error) {
	if *p != nil {
		return (*p).SetTarget(c.Target)
	}
	*p, err = socket.Probe(c)
	return err
}

// aim is where the proof is asked for; p.mu is held.
func (p *peerProbes) aim() netip.AddrPort {
	return netip.AddrPortFrom(p.targets[p.target], netops.EchoPort)
}

func (p *peerProbes) answered(_ echo.Message, rtt time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proven.IsZero() || p.missed {
		p.overlay.Hurry() // the gateway is waiting for it
	}
	p.proven, p.missed, p.rtt = time.Now(), false, rtt
	p.look(p.asked, p.proven)
}

func (p *peerProbes) gatewayAnswered(m echo.Message, _ time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = time.Now()
	p.look(m.Content.Witness, p.proven)
}

func (p *peerProbes) gatewayMissed(int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.overlay.Hurry()
	p.look(p.asked, p.proven)
}

// lost asks again at once: the peer's next node, where there is one.
func (p *peerProbes) lost(int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proof == nil {
		return
	}
	p.missed = true
	p.look(p.asked, p.proven)
	if len(p.targets) < 2 {
		p.proof.Hurry()
		return
	}
	p.target = (p.target + 1) % len(p.targets)
	_ = p.proof.SetTarget(p.aim()) // targets come from records that were checked
}

// content is what an echo tells the gateway.
func (p *peerProbes) content() echo.Content {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := echo.Report{Internal: p.internal}
	if p.overlay != nil {
		r.OverlayRTT = p.overlay.Stats().RTT
	}
	if !p.proven.IsZero() {
		r.Proven, r.ProofAge, r.ProofRTT = true, time.Since(p.proven), p.rtt
	}
	return echo.Content{Report: r, Path: p.gateway.size.known(), Witness: p.asked}
}
