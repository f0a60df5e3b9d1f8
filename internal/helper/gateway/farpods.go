//go:build linux

package gateway

import (
	"context"
	"net/netip"
	"time"

	"liqonet.io/liqonet/netops/membership"
	"liqonet.io/liqonet/netops/tunnel"
)

// farPodReply is the time for the answer with the latest epoch to reach an earlier pod before its session ends.
const farPodReply = 50 * time.Millisecond

// farPods are the pods that use the key of the peer's gateway: several if a node is cut off from its API server.
// WireGuard answers whichever pod sent last. When an earlier pod sends, its session is ended and a new one is requested
// from the latest pod. The lock of the gateway's echoes guards it. In the zero value no pod is known.
type farPods struct {
	membership.Pods
	device farDevice      // nil: not open yet
	at     netip.AddrPort // where the latest was first received from; the zero value: unknown
}

// farDevice is the tunnel device, as used by farPods.
type farDevice interface {
	Stats() (tunnel.Stats, error)
	RenewAt(endpoint netip.AddrPort) error
	MoveTo(endpoint netip.AddrPort) error
}

// use sets the device of the tunnel.
func (t *tunnelEchoes) use(d tunnel.Tunnel) {
	t.gateway.mu.Lock()
	defer t.gateway.mu.Unlock()
	t.far.device = d
	t.renewal.renew = func(ctx context.Context) error {
		t.gateway.renewing.Lock()
		defer t.gateway.renewing.Unlock()
		_, endpoints := t.gateway.learned()
		return d.Renew(ctx, endpoints, t.gateway.addressesBeside(t))
	}
}

// addressesBeside returns the addresses that tunnels other than one use for the peer.
func (g *echoes) addressesBeside(one *tunnelEchoes) (all []netip.Addr) {
	for _, t := range g.all() {
		t.gateway.mu.Lock()
		device := t.far.device
		t.gateway.mu.Unlock()
		if t == one || device == nil {
			continue
		}
		if s, err := device.Stats(); err == nil && s.Endpoint.IsValid() {
			all = append(all, s.Endpoint.Addr())
		}
	}
	return all
}

// from handles the epoch in an echo or answer; the lock is held.
func (t *tunnelEchoes) from(e membership.Epoch, now time.Time) {
	f := &t.far
	if f.device == nil {
		return
	}
	switch pod := f.Observe(e, now); {
	case pod == membership.NewPod:
		f.at = netip.AddrPort{}
		go t.locate(f.device, e)
	case pod == membership.EarlierPod && f.at.IsValid() && f.End(now):
		at := f.at
		time.AfterFunc(farPodReply, func() { t.turnTo(at) })
	}
}

// locate stores the current source of the tunnel's packets as the location of the latest pod.
func (t *tunnelEchoes) locate(d farDevice, e membership.Epoch) {
	stats, _ := d.Stats()
	t.gateway.mu.Lock()
	defer t.gateway.mu.Unlock()
	if t.far.Is(e) {
		t.far.at = stats.Endpoint
	}
}

// turnTo ends the session, and requests a new one at an endpoint.
func (t *tunnelEchoes) turnTo(at netip.AddrPort) {
	err := t.far.device.RenewAt(at)
	t.log.Warn("an earlier pod of the peer's gateway is still there; the tunnel stays with the latest", "endpoint", at, "error", err)
	t.sendNow()
}
