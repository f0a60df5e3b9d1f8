//go:build linux

package helper

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"liqonet.io/liqonet/netops/echo"
)

const (
	// entryEvery bounds how often a client's tunnel tries to enter the server's cluster by another node.
	entryEvery = 10 * time.Second
	// entryTries is how often it turns there, each time entryWait: packets that arrive from elsewhere turn it back.
	entryTries = 5
	entryWait  = 20 * time.Millisecond
)

// enterBy has the tunnel enter the server's cluster by the node of its gateway. By another one, the loss of either would end it, and that
// of one node could end the tunnels to all gateways. It does so while the tunnel has just returned, and others carry the packets: WireGuard
// sends to where the last packet came from, so that one in use would be turned back. t.mu is held.
func (t *tunnelEchoes) enterBy(node netip.Addr) {
	device, to := t.far.device, netip.AddrPortFrom(node, t.sender.Port())
	if t.stands != returned || device == nil || !t.sender.IsValid() || t.sender == to || time.Since(t.moved) < entryEvery {
		return
	}
	t.moved = time.Now()
	go func() {
		err := t.moveTo(device, to)
		t.renewal.log.Info("the tunnel turns to the node of its gateway", "endpoint", to, "error", err)
	}()
}

// moveTo turns the tunnel to an endpoint that answers an echo at the tunnel's port.
func (t *tunnelEchoes) moveTo(device farDevice, to netip.AddrPort) error {
	underlay := t.gateway.underlay()
	if underlay == nil {
		return net.ErrClosed
	}
	if _, err := underlay.LargestPacket(context.Background(), echo.SizeConfig{Target: to, Most: echo.LeastPacket}); err != nil {
		return err
	}
	for range entryTries {
		if err := device.MoveTo(to); err != nil {
			return err
		}
		<-time.After(entryWait)
		if s, err := device.Stats(); err != nil || s.Endpoint == to {
			return err
		}
	}
	return errors.New("its packets come from elsewhere")
}
