//go:build linux

package helper

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/echo"
)

// How often a node asks.
const (
	overlayEvery = time.Second // its gateways
	// overlayHurried is that after a loss, and where other gateways could carry packets; overlayMisses in a row, and
	// one of several is not used.
	overlayHurried = 200 * time.Millisecond
	overlayTimeout = 300 * time.Millisecond
	overlayMisses  = 3
	// proofEvery is for one node of each peer, with packets of the path's full size.
	proofEvery = 2 * time.Second
)

// echoHeaders is what stands before an echo in its packet: IP 20, UDP 8.
const echoHeaders = 28

// gatewayProbes are a node's probes of one gateway, and of the peer behind it.
type gatewayProbes struct {
	internal netip.Addr // of the node
	size     int        // of the messages that prove the path, bytes
	overlay  *echo.Prober
	outside  sizeSocket // of the path MTU to the gateway's pod

	mu      sync.Mutex
	proof   *echo.Prober // nil: no node of the peer is known
	targets []netip.Addr
	target  int       // index of the one that is asked
	proven  time.Time // last answer of any of them; zero: none
	missed  bool      // the last proof was lost
	rtt     time.Duration
	unused  bool // no packets of pods are sent to this gateway
	witness
	member
}

func newGatewayProbes(internal netip.Addr, size int, news chan<- struct{}) *gatewayProbes {
	p := &gatewayProbes{internal: internal, size: size, witness: witness{news: news}}
	p.outside.size.changed = p.hurry
	return p
}

// hurry tells the gateway at once what is new.
func (p *gatewayProbes) hurry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.overlay != nil {
		p.overlay.SendNow()
	}
}

// take says whether packets of pods are sent to this gateway, and what calls for a pass when that may change; nil:
// nothing.
func (p *gatewayProbes) take(unused bool, wake chan<- struct{}) {
	p.mu.Lock()
	news := p.unused != unused
	p.unused, p.wake = unused, wake
	p.mu.Unlock()
	if news {
		p.hurry()
	}
}

// standing is what the gateway can be used for.
func (p *gatewayProbes) standing() standing {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stands
}

func (p *gatewayProbes) stop() {
	_ = p.outside.close() // a closed UDP socket has nothing left to lose
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, prober := range []*echo.Prober{p.overlay, p.proof} {
		if prober != nil {
			prober.Stop()
		}
	}
}

// follow begins to ask, or goes on with other addresses. By way go the packets that prove the path, whatever gateways
// others take.
func (p *gatewayProbes) follow(socket *echo.Socket, gateway netip.Addr, targets []netip.Addr, way echo.Route) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := aimProber(&p.overlay, socket, echo.ProbeConfig{
		Target: netip.AddrPortFrom(gateway, netops.EchoPort), Interval: overlayHurried, Calm: overlayEvery, Timeout: overlayTimeout, Window: 1,
		Content: p.content, OnReply: p.gatewayAnswered, OnLost: p.gatewayMissed, OnSilence: p.gatewaySilent, Patience: memberPatience,
	})
	if err != nil {
		return err
	}
	if p.wake == nil {
		p.overlay.SetCalm(overlayEvery)
	} else {
		p.overlay.SetCalm(overlayHurried)
	}
	if len(targets) == 0 {
		return nil
	}
	if !slices.Equal(p.targets, targets) {
		p.targets = targets
		p.target = int(p.internal.As4()[3]) % len(targets) // nodes spread over the peer's
	}
	return aimProber(&p.proof, socket, echo.ProbeConfig{
		Target: p.aim(), Route: way, Interval: proofEvery, Size: p.size, OnReply: p.answered, OnLost: p.lost,
	})
}

// aim is where the proof is asked for; p.mu is held.
func (p *gatewayProbes) aim() netip.AddrPort {
	return netip.AddrPortFrom(p.targets[p.target], netops.EchoPort)
}

func (p *gatewayProbes) answered(_ echo.Message, rtt time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proven.IsZero() || p.missed {
		p.overlay.SendNow() // the gateway is waiting for it
	}
	p.proven, p.missed, p.rtt = time.Now(), false, rtt
	p.look(p.asked, p.proven)
}

func (p *gatewayProbes) gatewayAnswered(m echo.Message, _ time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = time.Now()
	p.look(m.Content.Witness, p.proven)
	p.member.answered(m.Content)
}

func (p *gatewayProbes) gatewayMissed(consecutive int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if consecutive < overlayMisses {
		p.overlay.SendNow()
	}
	p.member.missed(consecutive, overlayMisses)
	p.look(p.asked, p.proven)
}

// gatewaySilent notes that the gateway's answers stay away.
func (p *gatewayProbes) gatewaySilent() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent()
}

// lost asks again at once: the peer's next node, where there is one.
func (p *gatewayProbes) lost(int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proof == nil {
		return
	}
	p.missed = true
	p.look(p.asked, p.proven)
	p.target = (p.target + 1) % len(p.targets)
	_ = p.proof.SwitchTarget(p.aim()) // targets come from records that were checked
}

// content is what an echo tells the gateway.
func (p *gatewayProbes) content() echo.Content {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := echo.Report{Internal: p.internal}
	if p.overlay != nil {
		r.OverlayRTT = p.overlay.Stats().RTT
	}
	if !p.proven.IsZero() {
		r.Verified, r.VerifiedAge, r.VerifiedRTT = true, time.Since(p.proven), p.rtt
	}
	deaf := p.wake != nil && time.Since(p.heard) >= nodeReached
	return echo.Content{Report: r, Path: p.outside.size.known(), Witness: p.asked, Unused: p.unused, NoWay: deaf}
}
