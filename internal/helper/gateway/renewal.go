//go:build linux

package gateway

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"liqonet.io/liqonet/internal/helper/wakeup"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops/membership"
	"liqonet.io/liqonet/netops/tunnel"
)

// renewal renews the tunnel when no packet arrives from the peer: with an immediate handshake instead of WireGuard's
// own timers. The lock of the gateway's echoes guards it.
type renewal struct {
	due    membership.Renewal
	cancel context.CancelFunc // of the running renewal; nil: none
	ports  int                // how often a client without encryption needed another port
}

// answered handles an answer of the peer, or the first request to it. It cancels a renewal that still waits.
func (r *renewal) answered(now time.Time) {
	if r.cancel != nil {
		r.cancel()
	}
	r.due.Received(now)
}

// renewIfDue renews the tunnel if it is due, one renewal at a time: it waits for those of other tunnels, and for name
// servers. The lock is held.
func (t *peerTunnel) renewIfDue(now time.Time) {
	r := &t.renewal
	if t.device == nil || r.cancel != nil || !r.due.Due(now) {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go t.renew(ctx, t.device)
}

// renew renews the tunnel, unless an answer arrives before.
func (t *peerTunnel) renew(ctx context.Context, device tunnel.Tunnel) {
	t.gateway.renewing.Lock()
	_, endpoints := t.gateway.learned()
	err := device.Renew(ctx, endpoints, t.gateway.addressesBeside(t))
	t.gateway.renewing.Unlock()
	if err != nil && !errors.Is(err, context.Canceled) {
		t.log.Warn("renew the tunnel", "error", err)
	}
	t.gateway.mu.Lock()
	defer t.gateway.mu.Unlock()
	if err == nil && t.plain && t.role == records.Client {
		t.renewal.ports++
		wakeup.Notify(t.gateway.wake) // the pass makes the link again
	}
	if err == nil && t.peer != nil {
		t.peer.SendNow() // the requests that waited for a handshake went with the session
	}
	t.renewal.cancel()
	t.renewal.cancel = nil
}

// renewed returns how often tunnels without encryption were renewed, by number.
func (g *echoes) renewed() map[int]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := map[int]int{}
	for i, t := range g.tunnels {
		if t.renewal.ports > 0 {
			all[i+1] = t.renewal.ports
		}
	}
	return all
}

// addressesBeside returns the addresses that tunnels other than one use for the peer.
func (g *echoes) addressesBeside(one *peerTunnel) (all []netip.Addr) {
	for _, t := range g.all() {
		if t == one {
			continue
		}
		if s, _ := t.stats(); s.Endpoint.IsValid() {
			all = append(all, s.Endpoint.Addr())
		}
	}
	return all
}
