package publish

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
	"liqonet.io/liqonet/internal/helper/wakeup"
)

// Reporter writes the latest of a stream of values, outside of the loop: a slow or absent API server delays reports and
// nothing else. A value that equals the last one written is not written.
type Reporter[T any] struct {
	write func(context.Context, T) (text string, err error)
	// kept reports whether the last written text is still in place.
	kept func(written T, text string) bool
	// minor reports whether a value differs from the last written one in minor fields only; such a value waits until
	// Every has passed.
	minor func(written, v T) bool
	log   *slog.Logger

	// News bounds the rate of immediate writes; nil: unlimited.
	News *rate.Limiter
	// Every is the minimum time between two writes of minor changes.
	Every func(v T) time.Duration

	mu     sync.Mutex
	latest T
	wake   chan struct{}
}

// Patch changes fields of an object's metadata, and its data if given: it needs no permission to read the object.
func Patch[T any](ctx context.Context, client Patcher[T], name string, metadata, data any) (T, error) {
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

// Patcher is the Patch method of the typed client of a kind.
type Patcher[T any] interface {
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, o metav1.PatchOptions, sub ...string) (T, error)
}

// Limits of a Reporter's writes.
const (
	writeTimeout = 10 * time.Second
	writePause   = 100 * time.Millisecond // between two writes, so that a burst takes one or two
	writeRetry   = time.Second
	newsQuick    = 3 // writes of News.Burst after which writePause grows
	// restoreAfter is the time after a write from which different content counts as an external change: before, the API
	// server may not have shown the write yet. It also bounds the rate at which two writers of one object overwrite
	// each other.
	restoreAfter = 2 * time.Second
)

// NewsRate is the limit of writes whose rate a peer or a gateway controls, if all nodes run a pass at each of them; the
// peer sends nodes, roams, and answers or does not.
var NewsRate = rate.Every(10 * time.Second)

// NewsBurst is how many writes are possible at once before NewsRate applies: enough for a new peering.
const NewsBurst = 10

// NewReporter returns a Reporter whose minor changes wait until health.ReportEvery has passed.
func NewReporter[T any](
	log *slog.Logger, minor func(written, v T) bool, write func(context.Context, T) (string, error), kept func(written T, text string) bool,
) *Reporter[T] {
	every := func(T) time.Duration { return health.ReportEvery }
	return &Reporter[T]{write: write, kept: kept, minor: minor, Every: every, log: log, wake: make(chan struct{}, 1)}
}

// Set sets the value to write next.
func (r *Reporter[T]) Set(v T) { r.Change(func(latest *T) { *latest = v }) }

// Change changes the value to write next.
func (r *Reporter[T]) Change(f func(latest *T)) {
	r.mu.Lock()
	f(&r.latest)
	r.mu.Unlock()
	wakeup.Notify(r.wake)
}

// Run writes until ctx ends.
func (r *Reporter[T]) Run(ctx context.Context) {
	var last writing[T]
	pause := time.After(0)
	var later <-chan time.Time // nil until a value has to wait
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause:
		}
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-later:
		}
		r.mu.Lock()
		v := r.latest
		r.mu.Unlock()
		rest, due := r.due(last, v)
		if !due || rest > 0 {
			if due {
				later = time.After(rest)
			}
			pause = time.After(0)
			continue
		}
		write, cancel := context.WithTimeout(ctx, writeTimeout)
		text, err := r.write(write, v)
		cancel()
		if err != nil {
			r.log.Warn("report not written; it will be tried again", "error", err)
			wakeup.Notify(r.wake)
			pause = time.After(writeRetry)
			continue
		}
		if r.News != nil {
			r.News.Allow() // always allowed: writes count, attempts do not
		}
		last = writing[T]{v, text, time.Now()}
		pause = time.After(r.pause())
	}
}

// pause returns the time between two writes. After some writes of the burst it grows: a new peering changes for
// seconds, and its last change must not wait for the limit.
func (r *Reporter[T]) pause() time.Duration {
	if r.News == nil {
		return writePause
	}
	return time.Duration(max(1, float64(r.News.Burst()-newsQuick)-r.News.Tokens()) * float64(writePause))
}

// writing is a written value. The zero value: none.
type writing[T any] struct {
	value T
	text  string
	at    time.Time
}

// due reports whether a value is to be written, and after how long: zero or less is immediately.
func (r *Reporter[T]) due(last writing[T], v T) (rest time.Duration, due bool) {
	since, every := time.Since(last.at), r.Every(v)
	switch same := reflect.DeepEqual(last.value, v); {
	case last.at.IsZero():
	case since >= restoreAfter && !r.kept(last.value, last.text):
		return 0, true
	case since < restoreAfter && (same || r.minor(last.value, v) && since < every):
		return restoreAfter - since, true // to check that it is still in place
	case same:
		return 0, false
	case r.minor(last.value, v):
		return every - since, true
	}
	if r.News != nil {
		rest = time.Duration((1 - r.News.Tokens()) / float64(r.News.Limit()) * float64(time.Second))
	}
	return rest, true
}
