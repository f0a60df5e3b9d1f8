//go:build linux

package gateway

import (
	"net/netip"
	"time"

	"liqonet.io/liqonet/netops/membership"
)

// farPodReply is the time for the answer with the latest epoch to reach an earlier pod before its session ends.
const farPodReply = 50 * time.Millisecond

// farPods are the pods that use the key of the peer's gateway: several if a node is cut off from its API server.
// WireGuard answers whichever pod sent last. When an earlier pod sends, its session is ended and a new one is requested
// from the latest pod. The lock of the gateway's echoes guards it. In the zero value no pod is known.
type farPods struct {
	membership.Pods
	at netip.AddrPort // where the latest was first received from; the zero value: unknown
}

// from handles the epoch in an echo or answer; the lock is held.
func (t *peerTunnel) from(e membership.Epoch, now time.Time) {
	f := &t.far
	if t.device == nil {
		return
	}
	switch pod := f.Observe(e, now); {
	case pod == membership.NewPod:
		f.at = netip.AddrPort{}
		go t.locate(e)
	case pod == membership.EarlierPod && f.at.IsValid() && f.End(now):
		at := f.at
		time.AfterFunc(farPodReply, func() { t.turnTo(at) })
	}
}

// locate stores the current source of the tunnel's packets as the location of the latest pod.
func (t *peerTunnel) locate(e membership.Epoch) {
	stats, _ := t.stats()
	t.gateway.mu.Lock()
	defer t.gateway.mu.Unlock()
	if t.far.Is(e) {
		t.far.at = stats.Endpoint
	}
}

// turnTo ends the session, and requests a new one at an endpoint.
func (t *peerTunnel) turnTo(at netip.AddrPort) {
	t.gateway.mu.Lock()
	device := t.device
	t.gateway.mu.Unlock()
	if device == nil { // the driver changes
		return
	}
	err := device.RenewAt(at)
	t.log.Warn("an earlier pod of the peer's gateway is still there; the tunnel stays with the latest", "endpoint", at, "error", err)
	t.sendNow()
}
