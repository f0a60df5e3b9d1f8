//go:build linux

package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"

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
	tunnel tunnel.Tunnel  // nil: not open yet
	wanted *tunnel.Config // last applied configuration; nil: unknown
}

// bringTunnels opens the tunnels of a view or restores them, removes all others, and reports whether anything changed.
// It is called after a pass: no route leads to a removed tunnel.
func (l *loop) bringTunnels(v view) (changed bool, err error) {
	count := len(v.own().Tunnels)
	for number := len(l.tunnels) + 1; number <= count; number++ {
		l.tunnels = append(l.tunnels, &gatewayTunnel{
			log: l.Log.With("peerGateway", number), drift: l.Drift, echoes: l.echoes.tunnel(number), wake: l.wake, driver: l.driver,
		})
	}
	gone := slices.Clone(l.tunnels[count:])
	l.tunnels = l.tunnels[:count]
	l.shareTunnels()
	if len(gone) > 0 {
		l.echoes.keep(count)
	}
	var errs []error
	for _, t := range gone {
		errs = append(errs, t.close(true))
		changed = true
	}
	for i, t := range l.tunnels {
		c, err := v.tunnel(l.driver, i+1)
		if err == nil {
			var differed bool
			differed, err = t.bring(c)
			changed = changed || differed
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("tunnel to gateway %d of the peer: %w", i+1, err))
		}
	}
	l.shareTunnels()
	return changed, errors.Join(errs...)
}

// shareTunnels passes the tunnels to the task that measures them.
func (l *loop) shareTunnels() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shared = nil
	for _, t := range l.tunnels {
		l.shared = append(l.shared, *t)
	}
}

// bring opens the tunnel or restores it, and reports whether anything changed.
func (t *gatewayTunnel) bring(c tunnel.Config) (changed bool, err error) {
	before := t.wanted
	t.wanted = nil
	if t.tunnel != nil {
		changed, err = t.tunnel.Apply(c)
	} else {
		changed = true
		var open tunnel.Tunnel
		if open, err = t.driver.Open(c, t.log, func() { wakeup.Notify(t.wake) }); err == nil {
			t.tunnel = open
			t.echoes.use(open)
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
	if t.tunnel == nil {
		return tunnel.Stats{}
	}
	s, err := t.tunnel.Stats()
	if err != nil {
		t.log.Warn("read the tunnel's state", "error", err)
	}
	return s
}

// close ends the parts of the tunnel that depend on this process; with remove, all of it.
func (t *gatewayTunnel) close(remove bool) error {
	if t.tunnel == nil {
		return nil
	}
	return t.tunnel.Close(remove)
}
