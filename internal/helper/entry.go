//go:build linux

package helper

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"liqonet.io/liqonet/netops/echo"
)

const (
	// entryEvery bounds how often a client's tunnel tries to enter the server's cluster by another node.
	entryEvery = 10 * time.Second
	// entryTries is how often it turns there, and entryWait what it waits for packets that come from elsewhere and turn
	// it back.
	entryTries = 4
	entryWait  = 200 * time.Millisecond
)

// enterBy has a tunnel that has just returned enter the server's cluster by the node of its gateway. By another one,
// the loss of either would end it, and that of one node could end the tunnels to all gateways. One that carries packets
// for longer is left where it is: WireGuard sends to where the last packet came from, so that those on their way would
// turn it back. t.mu is held.
func (t *tunnelEchoes) enterBy(node netip.Addr) {
	device, to := t.far.device, netip.AddrPortFrom(node, t.sender.Port())
	ofRecord := func(e string) bool { _, port, _ := net.SplitHostPort(e); return port == strconv.Itoa(int(to.Port())) }
	if t.stands != returned || device == nil || t.sender == to || !slices.ContainsFunc(t.endpoints, ofRecord) || time.Since(t.moved) < entryEvery {
		return
	}
	t.moved = time.Now()
	pod := t.far.latest
	go func() {
		if err := t.moveTo(device, pod, to); err != nil {
			t.renewal.log.Info("the tunnel does not enter by the node of its gateway", "endpoint", to, "error", err)
		}
	}()
}

// moveTo turns the tunnel to an endpoint that answers an echo at the tunnel's port.
func (t *tunnelEchoes) moveTo(device farDevice, pod epoch, to netip.AddrPort) error {
	underlay := t.gateway.underlay()
	if underlay == nil {
		return net.ErrClosed
	}
	if _, err := underlay.LargestPacket(context.Background(), echo.SizeConfig{Target: to, Most: echo.LeastPacket}); err != nil {
		return err
	}
	for range entryTries {
		if !t.justReturned(pod) {
			return errors.New("it carries packets already, or is silent, or of another pod")
		}
		before, err := device.Stats()
		if err != nil {
			return err
		}
		if err := device.MoveTo(to); err != nil {
			return err
		}
		t.hurry()
		<-time.After(entryWait)
		s, err := device.Stats()
		if err != nil {
			return err
		}
		if s.Endpoint == to && s.RxBytes > before.RxBytes { // what came, came from there
			t.locate(device, pod)
			t.renewal.log.Info("the tunnel enters by the node of its gateway", "endpoint", to)
			return nil
		}
	}
	return errors.New("its packets come from elsewhere, or not at all")
}

// justReturned reports whether the tunnel has answered for less than a moment, as a pod.
func (t *tunnelEchoes) justReturned(pod epoch) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stands == returned && t.far.latest == pod
}
