//go:build linux

package gateway

import (
	"errors"
	"fmt"
	"reflect"

	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/internal/helper/wakeup"
	"liqonet.io/liqonet/netops/tunnel"
)

// bringTunnels opens the tunnels of a view or restores them, removes all others, and reports whether anything changed.
// It is called after a pass: no route leads to a removed tunnel.
func (l *loop) bringTunnels(v view) (changed bool, err error) {
	count := len(v.own().Tunnels)
	changed, err = l.echoes.keep(count)
	errs := []error{err}
	for i := range count {
		driver := l.driverOf(v)
		c, err := v.tunnel(driver, i+1)
		if err == nil {
			var differed bool
			differed, err = l.bring(l.echoes.tunnel(i+1), driver, c)
			changed = changed || differed
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("tunnel to gateway %d of the peer: %w", i+1, err))
		}
	}
	return changed, errors.Join(errs...)
}

// driverOf returns the driver of a view's tunnels.
func (l *loop) driverOf(v view) tunnel.Driver {
	if v.peering.Settings.Plain() {
		return l.plain
	}
	return l.driver
}

// bring opens a tunnel or restores it, and reports whether anything changed.
func (l *loop) bring(t *peerTunnel, driver tunnel.Driver, c tunnel.Config) (changed bool, err error) {
	before := t.wanted
	t.wanted = nil
	plain := driver == l.plain // two values of another driver cannot be compared
	if t.device != nil && t.plain != plain {
		err := t.device.Close(true)
		t.use(nil, plain)
		if err != nil {
			return true, err
		}
	}
	if t.device != nil {
		changed, err = t.device.Apply(c)
	} else {
		changed = true
		var open tunnel.Tunnel
		if open, err = driver.Open(c, t.log, func() { wakeup.Notify(l.wake) }); err == nil {
			t.use(open, plain)
			if plain {
				l.events.Add("ConfigMap", l.ID.StatusName(), false, publish.Unencrypted, "packets to the peer are not encrypted")
			}
		}
	}
	if errors.Is(err, tunnel.ErrSearching) {
		return changed, nil // the end of the search triggers a pass
	}
	if changed && before != nil && reflect.DeepEqual(*before, c) {
		l.AddDrift(helper.TunnelObject(c.Name))
	}
	if err == nil {
		t.wanted = &c
		if before != nil && before.Mark != c.Mark {
			err = t.changePath()
		}
	}
	return changed, err
}

// changePath begins with another transport at once: with a handshake if there is no session.
func (t *peerTunnel) changePath() error {
	s, err := t.device.Stats()
	if err == nil && !s.Session.Usable && s.Endpoint.IsValid() {
		err = t.device.RenewAt(s.Endpoint)
	}
	t.sendNow()
	return err
}

// use sets the device of the tunnel, which is plain if it has no encryption.
func (t *peerTunnel) use(d tunnel.Tunnel, plain bool) {
	t.gateway.mu.Lock()
	defer t.gateway.mu.Unlock()
	t.device, t.plain = d, plain
}

// stats returns the state of the tunnel; the zero value if it is not open.
func (t *peerTunnel) stats() (tunnel.Stats, error) {
	t.gateway.mu.Lock()
	device := t.device
	t.gateway.mu.Unlock()
	if device == nil {
		return tunnel.Stats{}, nil
	}
	return device.Stats()
}
