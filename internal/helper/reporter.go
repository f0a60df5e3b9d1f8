//go:build linux

package helper

import (
	"context"
	"log/slog"
	"reflect"
	"sync"
	"time"
)

// reporter writes the latest of a stream of values somewhere, off the loop: a slow or absent API server delays
// reports and nothing else. A value that equals the one written last is not written.
type reporter[T any] struct {
	write func(context.Context, T) error
	// minor reports whether a value differs from the one written last in nothing that is worth telling at once;
	// such a value waits until reportEvery has passed.
	minor func(written, v T) bool
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
	reportEvery  = 10 * time.Second // the least time between two writes that tell of counters only
)

func newReporter[T any](log *slog.Logger, minor func(written, v T) bool, write func(context.Context, T) error) *reporter[T] {
	return &reporter[T]{write: write, minor: minor, log: log, wake: make(chan struct{}, 1)}
}

// never calls every difference worth telling at once.
func never[T any](_, _ T) bool { return false }

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
	pause, later := time.NewTimer(0), time.NewTimer(reportEvery)
	defer pause.Stop()
	defer later.Stop()
	later.Stop() // until a value has to wait
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
		case <-later.C:
		}
		r.mu.Lock()
		v := r.latest
		r.mu.Unlock()
		if !at.IsZero() && reflect.DeepEqual(written, v) {
			pause.Reset(0)
			continue
		}
		if rest := reportEvery - time.Since(at); rest > 0 && r.minor(written, v) {
			later.Reset(rest)
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
