//go:build linux

package helper

import (
	"context"
	"net/netip"
	"time"

	"liqonet.io/liqonet/netops/tunnel"
)

const (
	// farPodSilence after the last echo of the latest pod, an earlier one may be the peer's gateway again.
	farPodSilence = 10 * time.Second
	// farPodReply is time for the answer with the latest epoch to reach an earlier pod, before its session ends;
	// farPodEvery bounds how often a session ends so.
	farPodReply = 50 * time.Millisecond
	farPodEvery = time.Second
)

// farPods are the pods that use the key of the peer's gateway: more than one where its node is cut off from its API
// server. WireGuard answers whichever sent last. What an earlier one sends has its session end and the latest asked for
// a new one. The lock of the tunnel's echoes guards it. The zero value has heard none.
type farPods struct {
	device farDevice // nil: not open yet
	latest epoch
	heard  time.Time      // the latest, last
	at     netip.AddrPort // where it was heard first; the zero value: not known
	ended  time.Time      // when a session was ended last
}

// farDevice is the tunnel, as farPods needs it.
type farDevice interface {
	Stats() (tunnel.Stats, error)
	RenewAt(endpoint netip.AddrPort) error
	MoveTo(endpoint netip.AddrPort) error
}

// use sets the device of the tunnel.
func (t *tunnelEchoes) use(d *tunnel.Device) {
	t.renewal.use(func(ctx context.Context) error {
		t.gateway.renewing.Lock() // two that are silent at once would find the same place free
		defer t.gateway.renewing.Unlock()
		return d.Renew(ctx, t.gateway.endpoints.current(), t.gateway.addressesBeside(t))
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.far.device = d
}

// addressesBeside are the addresses that tunnels other than one use for the peer.
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

// from notes of which pod an echo or answer is; t.mu is held.
func (t *tunnelEchoes) from(e epoch) {
	f, now := &t.far, time.Now()
	switch {
	case f.device == nil || !e.plausible():
	case e == f.latest:
		f.heard = now
	case e > f.latest || now.Sub(f.heard) >= farPodSilence:
		f.latest, f.heard, f.at = e, now, netip.AddrPort{}
		go t.locate(f.device, e)
	case f.at.IsValid() && now.Sub(f.ended) >= farPodEvery:
		f.ended = now
		at := f.at
		time.AfterFunc(farPodReply, func() { t.turnTo(at) })
	}
}

// locate notes where the tunnel's packets come from just now, as the place of the latest pod.
func (t *tunnelEchoes) locate(d farDevice, e epoch) {
	stats, _ := d.Stats()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.far.latest == e {
		t.far.at = stats.Endpoint
	}
}

// turnTo ends the session, and asks for another one at an endpoint.
func (t *tunnelEchoes) turnTo(at netip.AddrPort) {
	err := t.far.device.RenewAt(at)
	t.renewal.log.Warn("an earlier pod of the peer's gateway is still there; the tunnel stays with the latest", "endpoint", at, "error", err)
	t.hurry()
}

// newest is the epoch that answers report; zero: none. t.mu is held.
func (t *tunnelEchoes) newest() uint32 {
	if time.Since(t.far.heard) >= farPodSilence {
		return 0
	}
	return uint32(t.far.latest)
}
