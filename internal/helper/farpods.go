//go:build linux

package helper

import (
	"context"
	"net/netip"
	"time"

	"liqonet.io/liqonet/netops/tunnel"
)

const (
	// farPodSilence is the time after the last echo of the latest pod after which an earlier pod is accepted as the
	// peer's gateway again.
	farPodSilence = 10 * time.Second
	// farPodReply is the time for the answer with the latest epoch to reach an earlier pod before its session ends;
	// farPodEvery is the minimum interval of ending sessions like this.
	farPodReply = 50 * time.Millisecond
	farPodEvery = time.Second
)

// farPods are the pods that use the key of the peer's gateway: several if a node is cut off from its API server.
// WireGuard answers whichever pod sent last. When an earlier pod sends, its session is ended and a new one is requested
// from the latest pod. The lock of the tunnel's echoes guards it. In the zero value no pod is known.
type farPods struct {
	device   farDevice // nil: not open yet
	latest   epoch
	received time.Time      // of the latest pod, last
	at       netip.AddrPort // where it was first received from; the zero value: unknown
	ended    time.Time      // when a session was last ended
}

// farDevice is the tunnel device, as used by farPods.
type farDevice interface {
	Stats() (tunnel.Stats, error)
	RenewAt(endpoint netip.AddrPort) error
	MoveTo(endpoint netip.AddrPort) error
}

// use sets the device of the tunnel.
func (t *tunnelEchoes) use(d *tunnel.Device) {
	t.renewal.use(func(ctx context.Context) error {
		t.gateway.renewing.Lock() // concurrent renewals would select the same free address
		defer t.gateway.renewing.Unlock()
		return d.Renew(ctx, t.gateway.endpoints.current(), t.gateway.addressesBeside(t))
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.far.device = d
}

// addressesBeside returns the addresses that tunnels other than one use for the peer.
func (g *gatewayEchoes) addressesBeside(one *tunnelEchoes) (all []netip.Addr) {
	for _, t := range g.all() {
		t.mu.Lock()
		device := t.far.device
		t.mu.Unlock()
		if t == one || device == nil {
			continue
		}
		if s, err := device.Stats(); err == nil && s.Endpoint.IsValid() {
			all = append(all, s.Endpoint.Addr())
		}
	}
	return all
}

// from handles the epoch in an echo or answer; t.mu is held.
func (t *tunnelEchoes) from(e epoch) {
	f, now := &t.far, time.Now()
	switch {
	case f.device == nil || !e.plausible():
	case e == f.latest:
		f.received = now
	case e > f.latest || now.Sub(f.received) >= farPodSilence:
		f.latest, f.received, f.at = e, now, netip.AddrPort{}
		go t.locate(f.device, e)
	case f.at.IsValid() && now.Sub(f.ended) >= farPodEvery:
		f.ended = now
		at := f.at
		time.AfterFunc(farPodReply, func() { t.turnTo(at) })
	}
}

// locate stores the current source of the tunnel's packets as the location of the latest pod.
func (t *tunnelEchoes) locate(d farDevice, e epoch) {
	stats, _ := d.Stats()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.far.latest == e {
		t.far.at = stats.Endpoint
	}
}

// turnTo ends the session, and requests a new one at an endpoint.
func (t *tunnelEchoes) turnTo(at netip.AddrPort) {
	err := t.far.device.RenewAt(at)
	t.renewal.log.Warn("an earlier pod of the peer's gateway is still there; the tunnel stays with the latest", "endpoint", at, "error", err)
	t.sendNow()
}

// newest returns the epoch for answers; zero: none. t.mu is held.
func (t *tunnelEchoes) newest() uint32 {
	if time.Since(t.far.received) >= farPodSilence {
		return 0
	}
	return uint32(t.far.latest)
}
