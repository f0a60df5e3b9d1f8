package publish

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"liqonet.io/liqonet/internal/health"
)

// report is the value of the tests' reporters: changes of text are written immediately, changes of count are not.
type report struct {
	text  string
	count int
}

// writer records the writes of a reporter, with their times.
type writer struct {
	begin   time.Time
	values  []report
	at      []time.Duration
	refuse  error         // error of a write; nil: it succeeds
	latency time.Duration // of a write
}

func (w *writer) write(ctx context.Context, v report) (string, error) {
	if w.refuse != nil {
		return "", w.refuse
	}
	select {
	case <-time.After(w.latency):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	w.values, w.at = append(w.values, v), append(w.at, time.Since(w.begin))
	return v.text, nil
}

// testReporter runs a test with a reporter, in virtual time.
func testReporter(t *testing.T, do func(r *Reporter[report], w *writer, after func(time.Duration))) {
	synctest.Test(t, func(t *testing.T) {
		w := &writer{begin: time.Now()}
		kept := func(report, string) bool { return true }
		r := NewReporter(slog.New(slog.DiscardHandler), func(a, b report) bool { return a.text == b.text }, w.write, kept)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()
		do(r, w, func(d time.Duration) {
			time.Sleep(d) //nolint:forbidigo // synctest's clock
			synctest.Wait()
		})
		cancel()
		<-done
	})
}

func (w *writer) expect(t *testing.T, when string, want ...report) {
	t.Helper()
	if !slices.Equal(w.values, want) {
		t.Errorf("%s: written %v at %v, want %v", when, w.values, w.at, want)
	}
}

func TestReporterWritesWhatIsNew(t *testing.T) {
	testReporter(t, func(r *Reporter[report], w *writer, after func(time.Duration)) {
		after(time.Minute)
		w.expect(t, "nothing set")
		r.Set(report{"a", 1})
		after(0)
		w.expect(t, "the first at once", report{"a", 1})
		r.Set(report{"a", 1})
		after(time.Minute)
		w.expect(t, "the same again", report{"a", 1})
		r.Set(report{"b", 1})
		r.Set(report{"c", 1})
		after(writePause)
		w.expect(t, "of a burst the last", report{"a", 1}, report{"c", 1})
	})
}

// TestReporterLetsCountersWait checks that counters are written in the end, even if no value is set any more.
func TestReporterLetsCountersWait(t *testing.T) {
	testReporter(t, func(r *Reporter[report], w *writer, after func(time.Duration)) {
		r.Set(report{"a", 1})
		after(time.Second)
		r.Set(report{"a", 2})
		after(health.ReportEvery - 2*time.Second)
		w.expect(t, "too early for counters", report{"a", 1})
		after(time.Second)
		w.expect(t, "in time", report{"a", 1}, report{"a", 2})
		r.Set(report{"a", 3})
		after(time.Second)
		r.Set(report{"b", 4})
		after(0)
		w.expect(t, "something else at once", report{"a", 1}, report{"a", 2}, report{"b", 4})
		after(time.Minute)
		w.expect(t, "nothing twice", report{"a", 1}, report{"a", 2}, report{"b", 4})
	})
}

// TestReporterSpacesNews checks that a value which changes for seconds is written again and again, and that its last
// change does not wait for the limit.
func TestReporterSpacesNews(t *testing.T) {
	testReporter(t, func(r *Reporter[report], w *writer, after func(time.Duration)) {
		r.News = rate.NewLimiter(rate.Every(2*time.Second), NewsBurst)
		for range 40 { // for two seconds
			r.Set(report{text: time.Since(w.begin).String()})
			after(50 * time.Millisecond)
		}
		r.Set(report{text: "last"})
		after(700 * time.Millisecond)
		if last := w.values[len(w.values)-1]; last.text != "last" || len(w.values) > NewsBurst+1 {
			t.Errorf("written %v at %v, want the last one, and %d at most", w.values, w.at, NewsBurst+1)
		}
	})
}

func TestReporterTriesAgain(t *testing.T) {
	testReporter(t, func(r *Reporter[report], w *writer, after func(time.Duration)) {
		w.refuse = errors.New("no API server")
		r.Set(report{"a", 1})
		after(10 * writeRetry)
		w.expect(t, "without an API server")
		r.Set(report{"b", 1}) // does not wait
		w.refuse = nil
		after(writeRetry)
		w.expect(t, "the latest when it is back", report{"b", 1})
	})
}

// TestReporterGivesUpSlowWrites checks that a hanging write ends, and the latest value is retried.
func TestReporterGivesUpSlowWrites(t *testing.T) {
	testReporter(t, func(r *Reporter[report], w *writer, after func(time.Duration)) {
		w.latency = time.Hour
		r.Set(report{"a", 1})
		after(time.Second)
		r.Set(report{"b", 1})
		w.latency = 0
		after(writeTimeout + writeRetry)
		w.expect(t, "after the time of a write", report{"b", 1})
	})
}

// TestTwoWriters checks that two writers of one object, such as a gateway and a leftover one, each write once in two
// seconds.
func TestTwoWriters(t *testing.T) {
	testReporter(t, func(r *Reporter[report], w *writer, after func(time.Duration)) {
		r.kept = func(report, string) bool { return false } // the other writer always wrote in between
		for range 60 {
			r.Set(report{"a", 1})
			after(time.Second)
		}
		if n := len(w.values); n < 20 || n > 31 {
			t.Errorf("%d writes in a minute, want one in two seconds", n)
		}
	})
}
