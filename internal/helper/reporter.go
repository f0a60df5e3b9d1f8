//go:build linux

package helper

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// reporter writes the latest of a stream of values somewhere, off the loop: a slow or absent API server delays
// reports and nothing else. A value that equals the one written last is not written.
type reporter[T any] struct {
	write func(context.Context, T) error
	same  func(a, b T) bool
	// every is the least time between two writes of values that same calls equal; 0: such are not written.
	every time.Duration
	log   *slog.Logger

	mu     sync.Mutex
	latest T
	wake   chan struct{}
}

// Bounds of a reporter's writes.
const (
	writeTimeout = 10 * time.Second
	writePause   = 100 * time.Millisecond // between two writes, so that a burst is one or two
	writeRetry   = time.Second
)

func newReporter[T any](log *slog.Logger, every time.Duration, same func(a, b T) bool, write func(context.Context, T) error) *reporter[T] {
	return &reporter[T]{write: write, same: same, every: every, log: log, wake: make(chan struct{}, 1)}
}

// set makes v what is to be written next.
func (r *reporter[T]) set(v T) {
	r.mu.Lock()
	r.latest = v
	r.mu.Unlock()
	notify(r.wake)
}

// run writes until ctx ends.
func (r *reporter[T]) run(ctx context.Context) {
	var written T
	var at time.Time // of the last write; the zero value: none
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		r.mu.Lock()
		v := r.latest
		r.mu.Unlock()
		if !at.IsZero() && r.same(written, v) && (r.every == 0 || time.Since(at) < r.every) {
			pause.Reset(0)
			continue
		}
		write, cancel := context.WithTimeout(ctx, writeTimeout)
		err := r.write(write, v)
		cancel()
		if err != nil {
			r.log.Warn("report not written; it will be tried again", "error", err)
			notify(r.wake)
			pause.Reset(writeRetry)
			continue
		}
		written, at = v, time.Now()
		pause.Reset(writePause)
	}
}
