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
	// renewAfter is how long nothing may come from the peer before the tunnel is renewed: neither echo nor answer, nor
	// any byte that WireGuard takes. It is the pause before the second renewal, too, and each pause is twice the one
	// before, up to renewPause: where a round trip takes longer than a pause, no handshake ends. A longer one would
	// show a peering as down for more than five seconds after its path is back, because a new session waits for the
	// next handshake.
	renewAfter = 2 * time.Second
	renewPause = 4 * time.Second
	// renewUnanswered is how long the peer may send echoes and answer none: packets cross one way only, as behind a
	// load balancer whose answers do not pass it, and another endpoint may be better. Under 20 % loss both ways, and
	// with fifty echoes a second, so long a time does not come by chance. A peer of which only bytes come is another
	// case: its kernel forwards while its helper is away.
	renewUnanswered = 15 * time.Second
)

// renewal renews the tunnel when nothing comes from the peer: a new handshake at once instead of WireGuard's own
// timers. It throws away the session, so that a line that only loses packets, or delays them, must not cause it.
type renewal struct {
	log *slog.Logger

	mu        sync.Mutex
	renew     func(context.Context) error // of the tunnel; nil: there is none yet
	lastHeard time.Time                   // when something came last, else when the peer was asked first
	lastEcho  time.Time                   // when an echo of the peer came last
	// When an answer came last, else when the peer was asked first, or the tunnel renewed for lack of one.
	lastAnswer time.Time
	received   int64              // bytes, by WireGuard's counter
	looked     time.Time          // when that was read
	next       time.Time          // before which there is no other renewal; zero: none since something came
	pause      time.Duration      // until next
	cancel     context.CancelFunc // of the renewal that runs; nil: none does
}

// use says how the tunnel is renewed.
func (r *renewal) use(renew func(context.Context) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.renew = renew
}

// heard notes an echo of the peer.
func (r *renewal) heard() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastEcho = time.Now()
	r.came(r.lastEcho)
}

// answered notes an answer of the peer, or that it is asked from now on. A renewal that still waits is not needed any
// more.
func (r *renewal) answered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel != nil {
		r.cancel()
	}
	r.lastAnswer = time.Now()
	r.came(r.lastAnswer)
}

// counted notes how many bytes have come from the peer. What was not there at the last look came after it.
func (r *renewal) counted(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if bytes > r.received && r.looked.After(r.lastHeard) {
		r.came(r.looked)
	}
	r.received, r.looked = bytes, time.Now()
	r.consider()
}

// came notes when something came; r.mu is held.
func (r *renewal) came(at time.Time) { r.lastHeard, r.next, r.pause = at, time.Time{}, 0 }

// missed notes that an answer is missing.
func (r *renewal) missed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.consider()
}

// consider renews the tunnel if it is time to, one renewal at a time: it waits for those of other tunnels, and for name
// servers; r.mu is held.
func (r *renewal) consider() {
	now := time.Now()
	unanswered := now.Sub(r.lastEcho) < renewAfter && now.Sub(r.lastAnswer) >= renewUnanswered
	if r.renew == nil || r.cancel != nil || r.lastHeard.IsZero() || now.Before(r.next) || now.Sub(r.lastHeard) < renewAfter && !unanswered {
		return
	}
	if unanswered {
		r.lastAnswer = now
	}
	r.pause = min(max(2*r.pause, renewAfter), renewPause)
	r.next = now.Add(r.pause)
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go r.run(ctx, r.renew)
}

// run renews the tunnel, unless an answer comes before.
func (r *renewal) run(ctx context.Context, renew func(context.Context) error) {
	if err := renew(ctx); err != nil && !errors.Is(err, context.Canceled) {
		r.log.Warn("renew the tunnel", "error", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel()
	r.cancel = nil
}
