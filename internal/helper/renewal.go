//go:build linux

package helper

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// renewAfter is how long the peer may be silent before the tunnel is renewed.
	renewAfter = 2 * time.Second
	// renewEvery is the least time between two renewals without an answer in between.
	renewEvery = 2 * time.Second
	renewLimit = 10 * time.Second // how long one may take
)

// renewal renews the tunnel when the peer stays silent: a new handshake at once instead of WireGuard's own timers.
type renewal struct {
	log *slog.Logger

	mu       sync.Mutex
	renew    func(context.Context) error // of the tunnel; nil: there is none yet
	answered time.Time                   // the peer's last answer, else when it was asked first; zero: not asked
	renewed  time.Time                   // zero: not since the last answer
}

// use says how the tunnel is renewed.
func (r *renewal) use(renew func(context.Context) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.renew = renew
}

// heard notes an answer of the peer, or that it is asked from now on.
func (r *renewal) heard() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered, r.renewed = time.Now(), time.Time{}
}

// missed notes that an answer is missing.
func (r *renewal) missed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.renew == nil || time.Since(r.answered) < renewAfter || time.Since(r.renewed) < renewEvery {
		return
	}
	r.renewed = time.Now()
	renew := r.renew
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), renewLimit)
		defer cancel()
		if err := renew(ctx); err != nil {
			r.log.Warn("renew the tunnel", "error", err)
		}
	}()
}
