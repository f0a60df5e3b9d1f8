//go:build linux

package gateway

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/netops/membership"
	"liqonet.io/liqonet/netops/tunnel"
)

const (
	// entryEvery is the minimum interval at which a client's tunnel tries to enter the server's cluster at another
	// node.
	entryEvery = 10 * time.Second
	// entryTries is the number of attempts to move the tunnel, and entryWait the wait for packets from another address,
	// which move it back.
	entryTries = 4
	entryWait  = 200 * time.Millisecond
)

// enterBy moves a tunnel that has just recovered to the node of the peer's gateway. Through another node, the loss of
// either node would interrupt it, and the loss of that one node could interrupt the tunnels to all gateways. The tunnel
// is not usable until that is done or has failed. A tunnel that carries packets is not moved: WireGuard sends to the
// address of the last received packet, so packets in flight would move it back. The lock is held.
func (t *peerTunnel) enterBy(node netip.Addr) {
	device, to := t.device, netip.AddrPortFrom(node, t.source.Port())
	ofRecord := func(e string) bool { _, port, _ := net.SplitHostPort(e); return port == strconv.Itoa(int(to.Port())) }
	if t.Standing() != membership.Recovered || device == nil || t.carrier.on() || t.source == to || !slices.ContainsFunc(t.endpoints, ofRecord) || time.Since(t.moved) < entryEvery {
		return
	}
	t.moved = time.Now()
	t.Hold(true, t.moved)
	pod := t.far.Latest(t.moved)
	go func() {
		if err := t.moveTo(device, pod, to); err != nil {
			t.log.Info("the tunnel does not enter by the node of its gateway", "endpoint", to, "error", err)
		}
		t.gateway.mu.Lock()
		defer t.gateway.mu.Unlock()
		t.Hold(false, time.Now())
	}()
}

// moveTo moves the tunnel to an endpoint that answers an echo at the tunnel's port.
func (t *peerTunnel) moveTo(device tunnel.Tunnel, pod membership.Epoch, to netip.AddrPort) error {
	underlay := t.gateway.underlay()
	if underlay == nil {
		return net.ErrClosed
	}
	if _, err := underlay.LargestPacket(context.Background(), echo.SizeConfig{Target: to, Most: echo.LeastPacket}); err != nil {
		return err
	}
	for range entryTries {
		if !t.justRecovered(pod) {
			return errors.New("it is silent, or drains, or is of another pod")
		}
		before, err := device.Stats()
		if err != nil {
			return err
		}
		if err := device.MoveTo(to); err != nil {
			return err
		}
		t.sendNow()
		<-time.After(entryWait)
		s, err := device.Stats()
		if err != nil {
			return err
		}
		if s.Endpoint == to && s.RxBytes > before.RxBytes { // the new packets came from there
			t.locate(pod)
			t.log.Info("the tunnel enters by the node of its gateway", "endpoint", to)
			return nil
		}
	}
	return errors.New("its packets come from elsewhere, or not at all")
}

// justRecovered reports whether the tunnel is still not in use, and of the same pod.
func (t *peerTunnel) justRecovered(pod membership.Epoch) bool {
	t.gateway.mu.Lock()
	defer t.gateway.mu.Unlock()
	return t.Standing() == membership.Recovered && t.far.Is(pod)
}
