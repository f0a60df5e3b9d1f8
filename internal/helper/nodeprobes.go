//go:build linux

package helper

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/echo"
)

// How often a node asks.
const (
	overlayEvery = time.Second // its gateways
	// proofEvery is for one node of each peer, with packets of the path's full size; one that is lost is followed by
	// the next at once.
	proofEvery = 2 * time.Second
	// proofPatience is how many answers may be missing before another node of the peer is asked.
	proofPatience = 3
)

// echoHeaders is what stands before an echo in its packet: IP 20, UDP 8.
const echoHeaders = 28

// nodeProbes measure a node's paths: to each gateway through the overlay and, as the proof of the whole path,
// to a node of each peer. What they find travels to the gateway in the echoes themselves.
type nodeProbes struct {
	log      *slog.Logger
	internal netip.Addr
	mu       sync.Mutex   // guards socket against readers other than the loop
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
	rtt     time.Duration
}

func newNodeProbes(log *slog.Logger) *nodeProbes {
	return &nodeProbes{log: log, peers: map[string]*peerProbes{}}
}

func (n *nodeProbes) close() {
	for _, p := range n.peers {
		p.stop()
	}
	clear(n.peers)
	if n.socket != nil {
		_ = n.socket.Close() // a closed UDP socket has nothing left to lose
		n.use(nil)
	}
}

func (n *nodeProbes) use(s *echo.Socket) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.socket = s
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
	if len(v.peerings) == 0 || internal != n.internal {
		n.close()
	}
	if len(v.peerings) == 0 {
		return nil
	}
	if n.socket == nil {
		socket, err := echo.Listen(echo.Config{Local: netip.AddrPortFrom(internal, netops.EchoPort), Responder: &echo.Responder{}})
		if err != nil {
			return err
		}
		n.use(socket)
		n.internal = internal
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
			old.stop()
			delete(n.peers, p.Name)
		}
		if n.peers[p.Name] == nil {
			n.peers[p.Name] = newPeerProbes(internal, size)
		}
		probes := n.peers[p.Name]
		err := errors.Join(probes.gateway.follow(gateway.PodIP), probes.follow(n.socket, p.GatewayAddress, gateway.PeerNodes))
		if err != nil {
			errs = append(errs, fmt.Errorf("probe peering %q: %w", p.Name, err))
		}
	}
	for name, p := range n.peers {
		if !wanted[name] {
			p.stop()
			delete(n.peers, name)
		}
	}
	return errors.Join(errs...)
}

func newPeerProbes(internal netip.Addr, size int) *peerProbes {
	p := &peerProbes{internal: internal, size: size}
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
	var err error
	target := netip.AddrPortFrom(gateway, netops.EchoPort)
	if p.overlay == nil {
		p.overlay, err = socket.Probe(echo.ProbeConfig{Target: target, Interval: overlayEvery, Content: p.content})
	} else {
		err = p.overlay.SetTarget(target)
	}
	if err != nil || len(targets) == 0 {
		return err
	}
	p.targets = targets
	p.target = int(p.internal.As4()[3]) % len(targets) // nodes spread over the peer's
	if p.proof == nil {
		p.proof, err = socket.Probe(echo.ProbeConfig{
			Target: p.aim(), Interval: proofEvery, Size: p.size, OnReply: p.answered, OnLost: p.lost,
		})
		return err
	}
	return p.proof.SetTarget(p.aim())
}

// aim is where the proof is asked for; p.mu is held.
func (p *peerProbes) aim() netip.AddrPort {
	return netip.AddrPortFrom(p.targets[p.target], netops.EchoPort)
}

func (p *peerProbes) answered(_ echo.Message, rtt time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proven.IsZero() {
		p.overlay.Hurry() // the gateway is waiting for the first one
	}
	p.proven, p.rtt = time.Now(), rtt
}

// lost asks again at once, and turns to the peer's next node when one stays silent.
func (p *peerProbes) lost(consecutive int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proof == nil {
		return
	}
	if consecutive < proofPatience || len(p.targets) < 2 {
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
	return echo.Content{Report: r, Path: p.gateway.size.known()}
}
