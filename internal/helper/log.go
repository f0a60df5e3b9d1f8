//go:build linux

package helper

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of a log: of each message so many lines at once, then one after each pause. Messages of libraries contain
// addresses and errors: from the bound on, those that are new count as one.
const (
	logBurst    = 20
	logPause    = 10 * time.Second
	logMessages = 500
)

// NewLog returns the log of a helper: a line of JSON for each fact. What repeats, such as a fault of each pass or
// packet, takes no more than its bound; "leftOut" is the number of lines before that were too many.
func NewLog(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(quiet{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}), &messages{known: map[string]*message{}}})
}

// quiet is a handler that leaves out what is too much.
type quiet struct {
	slog.Handler
	messages *messages // of it and all that were derived from it
}

// messages are those that were logged.
type messages struct {
	mu    sync.Mutex
	known map[string]*message
}

type message struct {
	rate *rate.Limiter
	left int // lines that were left out since the last one
}

// take reports whether another line of a message may be written, and how many before it were left out.
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
