//go:build linux

package helper

import (
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"liqonet.io/liqonet/internal/health"
)

// reporter writes the latest of a stream of values, outside of the loop: a slow or absent API server delays reports and
// nothing else. A value that equals the last one written is not written.
type reporter[T any] struct {
	write func(context.Context, T) (text string, err error)
	// kept reports whether the last written text is still in place.
	kept func(written T, text string) bool
	// news bounds the rate of immediate writes; nil: unlimited.
	news *rate.Limiter
	// minor reports whether a value differs from the last written one in minor fields only; such a value waits until
	// every has passed.
	minor func(written, v T) bool
	// every is the minimum time between two writes of minor changes.
	every func(v T) time.Duration
	log   *slog.Logger

	mu     sync.Mutex
	latest T
	wake   chan struct{}
}

// patch changes fields of an object's metadata, and its data if given: it needs no permission to read the object.
func patch[T any](ctx context.Context, client patcher[T], name string, metadata, data any) (T, error) {
	text, err := json.Marshal(struct {
		Metadata any `json:"metadata"`
		Data     any `json:"data,omitempty"`
	}{metadata, data})
	if err != nil {
		var none T
		return none, err
	}
	return client.Patch(ctx, name, types.MergePatchType, text, metav1.PatchOptions{})
}

// patcher is the Patch method of the typed client of a kind.
type patcher[T any] interface {
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, o metav1.PatchOptions, sub ...string) (T, error)
}

// Limits of a reporter's writes.
const (
	writeTimeout = 10 * time.Second
	writePause   = 100 * time.Millisecond // between two writes, so that a burst takes one or two
	writeRetry   = time.Second
	// restoreAfter is the time after a write from which different content counts as an external change: before, the API
	// server may not have shown the write yet. It also bounds the rate at which two writers of one object overwrite
	// each other.
	restoreAfter = 2 * time.Second
)

func newReporter[T any](
	log *slog.Logger, minor func(written, v T) bool, write func(context.Context, T) (string, error), kept func(written T, text string) bool,
) *reporter[T] {
	every := func(T) time.Duration { return health.ReportEvery }
	return &reporter[T]{write: write, kept: kept, minor: minor, every: every, log: log, wake: make(chan struct{}, 1)}
}

// never treats every difference as important.
func never[T any](_, _ T) bool { return false }

// set sets the value to write next.
func (r *reporter[T]) set(v T) { r.change(func(latest *T) { *latest = v }) }

// change changes the value to write next.
func (r *reporter[T]) change(f func(latest *T)) {
	r.mu.Lock()
	f(&r.latest)
	r.mu.Unlock()
	notify(r.wake)
}

// run writes until ctx ends.
func (r *reporter[T]) run(ctx context.Context) {
	var last writing[T]
	pause, later := time.NewTimer(0), time.NewTimer(health.ReportEvery)
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
		rest, due := r.due(last, v)
		if !due || rest > 0 {
			if due {
				later.Reset(rest)
			}
			pause.Reset(0)
			continue
		}
		write, cancel := context.WithTimeout(ctx, writeTimeout)
		text, err := r.write(write, v)
		cancel()
		if err != nil {
			r.log.Warn("report not written; it will be tried again", "error", err)
			notify(r.wake)
			pause.Reset(writeRetry)
			continue
		}
		if r.news != nil {
			r.news.Allow() // always allowed: writes count, attempts do not
		}
		last = writing[T]{v, text, time.Now()}
		pause.Reset(writePause)
	}
}

// writing is a written value. The zero value: none.
type writing[T any] struct {
	value T
	text  string
	at    time.Time
}

// due reports whether a value is to be written, and after how long.
func (r *reporter[T]) due(last writing[T], v T) (rest time.Duration, due bool) {
	since, every := time.Since(last.at), r.every(v)
	switch same := reflect.DeepEqual(last.value, v); {
	case last.at.IsZero():
	case since >= restoreAfter && !r.kept(last.value, last.text):
		return 0, true
	case since < restoreAfter && (same || r.minor(last.value, v) && since < every):
		return restoreAfter - since, true // to check that it is still in place
	case same:
		return 0, false
	case r.minor(last.value, v) && since < every:
		return every - since, true
	case r.minor(last.value, v):
		return 0, true
	}
	if r.news != nil {
		if missing := 1 - r.news.Tokens(); missing > 0 {
			rest = time.Duration(missing / float64(r.news.Limit()) * float64(time.Second))
		}
	}
	return rest, true
}
