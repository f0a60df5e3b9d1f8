//go:build linux

package node

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/netops/membership"
	"liqonet.io/liqonet/netops/pathmtu"
)

// Intervals of a node's echoes.
const (
	overlayEvery = time.Second // to its gateways
	// overlayHurried is the interval after a loss, and if other gateways could carry packets. After overlayMisses
	// consecutive losses, one of several gateways is not used.
	overlayHurried = 200 * time.Millisecond
	overlayTimeout = 300 * time.Millisecond
	overlayMisses  = 3
	// proofEvery is the interval for one node of each peer, with packets of the path's full size.
	proofEvery = 2 * time.Second
	// proofEager is the timeout of the first one: gateways and nodes of a new peering learn of each other meanwhile.
	proofEager = 100 * time.Millisecond
)

// echoHeaders are the headers of an echo's packet: IP 20, UDP 8.
const echoHeaders = 28

// gatewayProbes are a node's probes of one gateway, and of the peer behind it.
type gatewayProbes struct {
	node    uint32 // number of this node
	size    int    // of the messages that verify the path, bytes
	overlay *echo.Prober
	outside pathmtu.SocketMeter // for the path MTU to the gateway's pod

	mu      sync.Mutex
	proof   *echo.Prober // nil: no node of the peer is known
	targets []netip.Addr
	target  int       // index of the current one
	proven  time.Time // last answer of any target; zero: none
	missed  bool      // the last verification was lost
	rtt     time.Duration
	unused  bool // no packets of pods are sent to this gateway
	witness
	membership.Member
}

func newGatewayProbes(node uint32, size int, news chan<- struct{}) *gatewayProbes {
	p := &gatewayProbes{node: node, size: size, witness: witness{news: news}}
	p.outside.Changed = p.sendNow
	return p
}

// sendNow sends the next echo to the gateway immediately.
func (p *gatewayProbes) sendNow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.overlay != nil {
		p.overlay.SendNow()
	}
}

// setUse sets whether packets of pods are sent to this gateway, and the channel that triggers a pass when that may
// change; nil: none.
func (p *gatewayProbes) setUse(unused bool, wake chan<- struct{}) {
	p.mu.Lock()
	news := p.unused != unused
	p.unused, p.Wake = unused, wake
	p.mu.Unlock()
	if news {
		p.sendNow()
	}
}

// standing returns the standing of the gateway.
func (p *gatewayProbes) standing() membership.Standing {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Standing()
}

func (p *gatewayProbes) stop() {
	_ = p.outside.Close() // a closed UDP socket loses no data
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, prober := range []*echo.Prober{p.overlay, p.proof} {
		if prober != nil {
			prober.Stop()
		}
	}
}

// update starts the probes, or changes their addresses. The packets that verify the path use way, whichever gateways
// other packets use.
func (p *gatewayProbes) update(socket *echo.Socket, gateway netip.Addr, targets []netip.Addr, way echo.Route) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	calm := overlayEvery
	if p.Wake != nil {
		calm = overlayHurried
	}
	err := echo.Aim(&p.overlay, socket, echo.ProbeConfig{
		Target: netip.AddrPortFrom(gateway, netops.EchoPort), Interval: overlayHurried, Calm: calm, Timeout: overlayTimeout, Window: 1,
		Content: p.content, OnReply: p.gatewayAnswered, OnLost: p.gatewayMissed, OnSilence: p.gatewaySilent, Patience: membership.Patience,
	})
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return nil
	}
	if !slices.Equal(p.targets, targets) {
		p.targets = targets
		p.target = int(p.node) % len(targets) // nodes spread over the peer's nodes
	}
	return echo.Aim(&p.proof, socket, echo.ProbeConfig{
		Target: p.aim(), Route: way, Interval: proofEvery, Eager: proofEager, Size: p.size, OnReply: p.answered, OnLost: p.lost,
	})
}

// aim returns the current target of the verification; p.mu is held.
func (p *gatewayProbes) aim() netip.AddrPort {
	return netip.AddrPortFrom(p.targets[p.target], netops.EchoPort)
}

func (p *gatewayProbes) answered(_ echo.Message, rtt time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proven.IsZero() || p.missed {
		p.overlay.SendNow() // the gateway waits for the result
	}
	p.proven, p.missed, p.rtt = time.Now(), false, rtt
	p.check(p.asked, p.proven)
}

func (p *gatewayProbes) gatewayAnswered(m echo.Message, _ time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastAnswer = time.Now()
	p.check(m.Content.Witness, p.proven)
	p.Answered(m.Content, p.lastAnswer)
}

func (p *gatewayProbes) gatewayMissed(consecutive int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if consecutive < overlayMisses {
		p.overlay.SendNow()
	}
	p.Missed(consecutive, overlayMisses, time.Now())
	p.check(p.asked, p.proven)
}

// gatewaySilent handles missing answers of the gateway.
func (p *gatewayProbes) gatewaySilent() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Silent(time.Now())
}

// lost repeats the verification immediately: with the peer's next node, if there is one.
func (p *gatewayProbes) lost(int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proof == nil {
		return
	}
	p.missed = true
	p.check(p.asked, p.proven)
	p.target = (p.target + 1) % len(p.targets)
	_ = p.proof.SwitchTarget(p.aim()) // targets come from validated records
}

// content returns the content of an echo to the gateway.
func (p *gatewayProbes) content() echo.Content {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := echo.Report{Node: p.node}
	if p.overlay != nil {
		r.OverlayRTT = p.overlay.Stats().RTT
	}
	if !p.proven.IsZero() {
		r.Verified, r.VerifiedAge, r.VerifiedRTT = true, time.Since(p.proven), p.rtt
	}
	deaf := p.Wake != nil && time.Since(p.lastAnswer) >= membership.ReachedWithin
	return echo.Content{Report: r, Path: p.outside.Path(), Witness: p.asked, Unused: p.unused, NoWay: deaf}
}
