//go:build linux

package helper

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	// renewAfter is the time without any packet from the peer after which the tunnel is renewed: neither echo nor
	// answer, nor any byte that WireGuard accepts. It is also the pause before the second renewal. Each pause is twice
	// the previous one, up to renewPause: if a round trip takes longer than a pause, no handshake completes. A longer
	// renewPause would show a peering as down for more than five seconds after its path is back, because a new session
	// waits for the next handshake.
	renewAfter = 2 * time.Second
	renewPause = 4 * time.Second
)

// renewal renews the tunnel when no packet arrives from the peer: with an immediate handshake instead of WireGuard's
// own timers. It discards the session, so packet loss or delay alone must not cause it.
type renewal struct {
	log *slog.Logger

	mu        sync.Mutex
	renew     func(context.Context) error // of the tunnel; nil: none yet
	lastHeard time.Time                   // last packet, else the first request to the peer
	received  int64                       // bytes, by WireGuard's counter
	looked    time.Time                   // when received was read
	next      time.Time                   // no other renewal before this time; zero: no renewal since the last packet
	pause     time.Duration               // until next
	cancel    context.CancelFunc          // of the running renewal; nil: none
}

// use sets the function that renews the tunnel.
func (r *renewal) use(renew func(context.Context) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.renew = renew
}

// echoed handles an echo of the peer.
func (r *renewal) echoed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.came(time.Now())
}

// answered handles an answer of the peer, or the first request to it. It cancels a renewal that still waits.
func (r *renewal) answered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel != nil {
		r.cancel()
	}
	r.came(time.Now())
}

// counted handles the number of bytes received from the peer. A growing count means that packets arrived since the last
// reading.
func (r *renewal) counted(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if bytes > r.received && r.looked.After(r.lastHeard) {
		r.came(r.looked)
	}
	r.received, r.looked = bytes, time.Now()
	r.consider()
}

// came sets the time of the last packet; r.mu is held.
func (r *renewal) came(at time.Time) { r.lastHeard, r.next, r.pause = at, time.Time{}, 0 }

// missed handles a missing answer.
func (r *renewal) missed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.consider()
}

// consider renews the tunnel if it is due, one renewal at a time: it waits for those of other tunnels, and for name
// servers; r.mu is held.
func (r *renewal) consider() {
	now := time.Now()
	if r.renew == nil || r.cancel != nil || r.lastHeard.IsZero() || now.Before(r.next) || now.Sub(r.lastHeard) < renewAfter {
		return
	}
	r.pause = min(max(2*r.pause, renewAfter), renewPause)
	r.next = now.Add(r.pause)
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go r.run(ctx, r.renew)
}

// run renews the tunnel, unless an answer arrives before.
func (r *renewal) run(ctx context.Context, renew func(context.Context) error) {
	if err := renew(ctx); err != nil && !errors.Is(err, context.Canceled) {
		r.log.Warn("renew the tunnel", "error", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel()
	r.cancel = nil
}
