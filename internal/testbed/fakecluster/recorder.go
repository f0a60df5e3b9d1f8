package fakecluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/testbed/require"
)

// Recorder keeps the lines that an operation reports.
type Recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *Recorder) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

// Stage is not recorded.
func (r *Recorder) Stage(string) {}

// Done records the end of a stage, as "done NAME: DETAIL".
func (r *Recorder) Done(name, detail string, _ time.Duration) { r.add("done %s: %s", name, detail) }

// Note records "note TEXT".
func (r *Recorder) Note(text string) { r.add("note %s", text) }

// Warn records "warn TEXT (HINT)".
func (r *Recorder) Warn(text, hint string) { r.add("warn %s (%s)", text, hint) }

// Output returns all lines so far as a text.
func (r *Recorder) Output() string { return strings.Join(r.Lines(), "\n") }

// Lines returns all lines so far.
func (r *Recorder) Lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.lines...)
}

// Must runs a command and returns its result. The test ends if the command fails.
func Must[O, R any](t *testing.T, command func(context.Context, O, progress.Reporter) (R, error), o O) R {
	t.Helper()
	result, err := command(t.Context(), o, &Recorder{})
	require.NoError(t, err)
	return result
}
