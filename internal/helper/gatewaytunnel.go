//go:build linux

package helper

import (
	"errors"
	"log/slog"
	"sync/atomic"

	"liqonet.io/liqonet/netops/tunnel"
)

// gatewayTunnel is a gateway's tunnel to a gateway of the peer: the device, and its measurements.
type gatewayTunnel struct {
	log    *slog.Logger
	drift  *drift
	echoes *tunnelEchoes
	wake   chan<- struct{}               // triggers a pass
	device atomic.Pointer[tunnel.Device] // nil: not open yet
	wanted *tunnel.Config                // last applied configuration; nil: unknown
}

// bring opens the device or restores it, and reports whether anything changed.
func (t *gatewayTunnel) bring(c tunnel.Config) (bool, error) {
	before := t.wanted
	t.wanted = nil
	var err error
	d, changed := t.device.Load(), true
	if d != nil {
		changed, err = d.Apply(c)
	} else if d, err = tunnel.Open(c, t.log, func() { notify(t.wake) }); err == nil {
		t.device.Store(d)
		t.echoes.use(d)
	}
	if errors.Is(err, tunnel.ErrSearching) {
		return changed, nil // the end of the search triggers a pass
	}
	if changed && before != nil && before.Equal(c) {
		t.drift.add(tunnelObject(c.Name))
	}
	if err == nil {
		t.wanted = &c
	}
	return changed, err
}

// stats returns the device's statistics of the peer's gateway; the zero value if it is not open.
func (t *gatewayTunnel) stats() tunnel.Stats {
	d := t.device.Load()
	if d == nil {
		return tunnel.Stats{}
	}
	s, err := d.Stats()
	if err != nil {
		t.log.Warn("read the tunnel's state", "error", err)
	}
	return s
}

// remove removes the tunnel.
func (t *gatewayTunnel) remove() error {
	if d := t.device.Load(); d != nil {
		return d.Remove()
	}
	return nil
}

// close ends the parts that depend on this process; a kernel device stays.
func (t *gatewayTunnel) close() {
	if d := t.device.Load(); d != nil {
		if err := d.Close(); err != nil {
			t.log.Warn("close of the tunnel", "error", err)
		}
	}
}
