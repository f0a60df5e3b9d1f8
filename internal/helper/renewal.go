//go:build linux

package helper

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"liqonet.io/liqonet/netops/membership"
)

// renewal renews the tunnel when no packet arrives from the peer: with an immediate handshake instead of WireGuard's
// own timers. The lock of the tunnel's echoes guards it.
type renewal struct {
	log    *slog.Logger
	mu     *sync.Mutex // that lock
	due    membership.Renewal
	renew  func(context.Context) error // of the tunnel; nil: none yet
	cancel context.CancelFunc          // of the running renewal; nil: none
}

// answered handles an answer of the peer, or the first request to it. It cancels a renewal that still waits.
func (r *renewal) answered(now time.Time) {
	if r.cancel != nil {
		r.cancel()
	}
	r.due.Heard(now)
}

// consider renews the tunnel if it is due, one renewal at a time: it waits for those of other tunnels, and for name
// servers.
func (r *renewal) consider(now time.Time) {
	if r.renew == nil || r.cancel != nil || !r.due.Due(now) {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go r.run(ctx, r.renew)
}

// run renews the tunnel, unless an answer arrives before. The lock is not held.
func (r *renewal) run(ctx context.Context, renew func(context.Context) error) {
	if err := renew(ctx); err != nil && !errors.Is(err, context.Canceled) {
		r.log.Warn("renew the tunnel", "error", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel()
	r.cancel = nil
}
