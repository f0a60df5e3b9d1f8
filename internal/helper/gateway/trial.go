//go:build linux

package gateway

import (
	"cmp"
	"net/netip"
	"time"

	"liqonet.io/liqonet/internal/helper/wakeup"
	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/netops/membership"
)

// tryTimeout is the time after which a probe of UDP counts as lost.
const tryTimeout = time.Second

// try probes UDP with echoes of full size to the tunnel's port, as the path MTU is measured. The lock is held.
func (t *peerTunnel) try() {
	s, err := t.device.Stats()
	socket := t.gateway.probing
	if err != nil || socket == nil {
		t.carrier.due.Lost(time.Now())
		return
	}
	size := min(t.carrier.most, cmp.Or(t.carrier.path.Size, t.carrier.most)) - echoHeaders
	prober, err := socket.Probe(echo.ProbeConfig{
		Target: s.Endpoint, Interval: membership.TryEvery, Timeout: tryTimeout, Size: size,
		OnReply: func(echo.Message, time.Duration) { t.tried(true) }, OnLost: func(int) { t.tried(false) },
	})
	if err != nil {
		t.log.Warn("try UDP", "error", err)
		t.carrier.due.Lost(time.Now())
		return
	}
	t.carrier.prober = prober
	t.carrier.client.Announce(prober.Session())
}

// echoHeaders are the bytes of a packet around the content of an echo: IPv4 20, UDP 8.
const echoHeaders = 28

// tried handles the result of a probe.
func (t *peerTunnel) tried(answered bool) {
	t.gateway.mu.Lock()
	defer t.gateway.mu.Unlock()
	now, c := time.Now(), &t.carrier
	if answered && c.prober != nil && c.prober.Stats().Missing > 0 {
		answered = false // one before it was lost
	}
	switch {
	case answered && c.due.Answered(now):
		t.log.Info("UDP gets through again")
		t.endTry()
		wakeup.Notify(t.gateway.wake) // the pass removes the mark
	case !answered && c.due.Lost(now):
		t.endTry()
		t.tryElsewhere()
	}
}

func (t *peerTunnel) endTry() {
	t.carrier.due.Lost(time.Now()) // otherwise no other try begins
	if t.carrier.prober != nil {
		t.carrier.prober.Stop()
		t.carrier.prober = nil
	}
}

// tryElsewhere makes the next try go to another endpoint: the node of this one may be gone. The packets do not go there
// yet. The lock is held.
func (t *peerTunnel) tryElsewhere() {
	device, endpoints := t.device, t.gateway.endpoints.current()
	if len(endpoints) == 0 || device == nil {
		return
	}
	go func() {
		s, err := device.Stats()
		if err != nil {
			return
		}
		next := endpoints[0]
		for i, a := range endpoints {
			if a == s.Endpoint.Addr() {
				next = endpoints[(i+1)%len(endpoints)]
			}
		}
		if err := device.MoveTo(netip.AddrPortFrom(next, s.Endpoint.Port())); err != nil {
			t.log.Warn("try UDP elsewhere", "error", err)
		}
	}()
}
