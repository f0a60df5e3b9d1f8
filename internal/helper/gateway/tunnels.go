//go:build linux

package gateway

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// tunnels are a gateway's tunnels to the gateways of the peer, by gateway number minus one. The zero value has none.
type tunnels struct {
	mu  sync.Mutex
	all []*gatewayTunnel
}

func (t *tunnels) list() []*gatewayTunnel {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.all)
}

func (t *tunnels) set(all []*gatewayTunnel) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = all
}

// bringTunnels opens the tunnels of a view or restores them, removes all others, and reports whether anything changed.
// It is called after a pass: no route leads to a removed tunnel.
func (l *loop) bringTunnels(v view) (changed bool, err error) {
	all, count := l.tunnels.list(), len(v.own().Tunnels)
	for number := len(all) + 1; number <= count; number++ {
		all = append(all, &gatewayTunnel{log: l.Log.With("peerGateway", number), drift: l.Drift, echoes: l.echoes.tunnel(number), wake: l.wake, driver: l.driver})
	}
	gone := all[count:]
	all = all[:count]
	l.tunnels.set(all)
	if len(gone) > 0 {
		l.echoes.keep(count)
	}
	var errs []error
	for _, t := range gone {
		errs = append(errs, t.close(true))
		changed = true
	}
	for i, t := range all {
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
	return changed, errors.Join(errs...)
}
