//go:build linux

package helper

import (
	"context"
	"log/slog"
	"sync/atomic"

	"liqonet.io/liqonet/netops/tunnel"
)

// gatewayTunnel is a gateway's tunnel to a gateway of the peer: the device, and what is measured of it.
type gatewayTunnel struct {
	log    *slog.Logger
	drift  *drift
	echoes *tunnelEchoes
	device atomic.Pointer[tunnel.Device] // nil: not open yet
	wanted *tunnel.Config                // what the device was brought to last; nil: not known
}

// bring opens the device or restores it, and reports whether anything changed.
func (t *gatewayTunnel) bring(ctx context.Context, c tunnel.Config) (bool, error) {
	before := t.wanted
	t.wanted = nil
	var err error
	d, changed := t.device.Load(), true
	if d != nil {
		changed, err = d.Apply(ctx, c)
	} else if d, err = tunnel.Open(ctx, c, t.log); err == nil {
		t.device.Store(d)
		t.echoes.renewal.use(d.Renew)
	}
	if changed && before != nil && before.Equal(c) {
		t.drift.note(tunnelObject)
	}
	if err == nil {
		t.wanted = &c
	}
	return changed, err
}

// close ends what dies with this process; a device of the kernel stays.
func (t *gatewayTunnel) close() {
	if d := t.device.Load(); d != nil {
		if err := d.Close(); err != nil {
			t.log.Warn("close of the tunnel", "error", err)
		}
	}
}
