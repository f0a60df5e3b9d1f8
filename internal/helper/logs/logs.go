// Package logs limits what a helper logs.
package logs

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits of a log: for each message logBurst lines at once, then one after each pause. Messages of libraries contain
// addresses and errors: beyond logMessages different messages, new ones share one limit.
const (
	logBurst    = 20
	logPause    = 10 * time.Second
	logMessages = 500
)

// New returns the log of a helper, in lines of JSON. Repeated messages, such as a fault of each pass or packet, are
// limited; "leftOut" is the number of lines omitted before.
func New(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(quiet{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}), &messages{known: map[string]*message{}}})
}

// quiet is a handler that omits lines beyond the limits.
type quiet struct {
	slog.Handler
	messages *messages // shared with all derived handlers
}

// messages are the logged messages.
type messages struct {
	mu    sync.Mutex
	known map[string]*message
}

type message struct {
	rate *rate.Limiter
	left int // lines omitted since the last one
}

// take reports whether another line of a message may be written, and how many lines before it were omitted.
func (m *messages) take(text string) (left int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known[text] == nil && len(m.known) >= logMessages {
		text = ""
	}
	one := m.known[text]
	if one == nil {
		one = &message{rate: rate.NewLimiter(rate.Every(logPause), logBurst)}
		m.known[text] = one
	}
	if !one.rate.Allow() {
		one.left++
		return 0, false
	}
	left, one.left = one.left, 0
	return left, true
}

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	left, ok := q.messages.take(r.Message)
	if !ok {
		return nil
	}
	if left > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("leftOut", left))
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.messages}
}

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler {
	return quiet{q.Handler.WithGroup(name), q.messages}
}
