//go:build linux

package gateway

import (
	"errors"
	"log/slog"
	"reflect"
	"sync/atomic"

	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/helper/wakeup"
	"liqonet.io/liqonet/netops/tunnel"
)

// gatewayTunnel is a gateway's tunnel to a gateway of the peer, and its measurements.
type gatewayTunnel struct {
	log    *slog.Logger
	drift  *helper.Drift
	echoes *tunnelEchoes
	wake   chan<- struct{} // triggers a pass
	driver tunnel.Driver
	open   atomic.Pointer[tunnel.Tunnel] // nil: not open yet
	wanted *tunnel.Config                // last applied configuration; nil: unknown
}

// bring opens the tunnel or restores it, and reports whether anything changed.
func (t *gatewayTunnel) bring(c tunnel.Config) (bool, error) {
	before := t.wanted
	t.wanted = nil
	var err error
	open, changed := t.open.Load(), true
	if open != nil {
		changed, err = (*open).Apply(c)
	} else {
		open = new(tunnel.Tunnel)
		if *open, err = t.driver.Open(c, t.log, func() { wakeup.Notify(t.wake) }); err == nil {
			t.open.Store(open)
			t.echoes.use(*open)
		}
	}
	if errors.Is(err, tunnel.ErrSearching) {
		return changed, nil // the end of the search triggers a pass
	}
	if changed && before != nil && reflect.DeepEqual(*before, c) {
		t.drift.Add(helper.TunnelObject(c.Name))
	}
	if err == nil {
		t.wanted = &c
	}
	return changed, err
}

// stats returns the state of the tunnel; the zero value if it is not open.
func (t *gatewayTunnel) stats() tunnel.Stats {
	open := t.open.Load()
	if open == nil {
		return tunnel.Stats{}
	}
	s, err := (*open).Stats()
	if err != nil {
		t.log.Warn("read the tunnel's state", "error", err)
	}
	return s
}

// close ends the parts of the tunnel that depend on this process; with remove, all of it.
func (t *gatewayTunnel) close(remove bool) error {
	if open := t.open.Load(); open != nil {
		return (*open).Close(remove)
	}
	return nil
}
