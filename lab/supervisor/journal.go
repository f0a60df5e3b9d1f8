package supervisor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"liqonet.io/liqonet/lab/control"
)

// journal is what happened while the lab came up. Any number of readers follow it from the start.
type journal struct {
	began time.Time

	mu      sync.Mutex
	events  []control.Event
	changed chan struct{} // closed, and replaced, when an event is added
}

func newJournal(began time.Time) *journal {
	return &journal{began: began, changed: make(chan struct{})}
}

func (j *journal) add(format string, args ...any) {
	j.append(control.Event{Text: fmt.Sprintf(format, args...)})
}

// end adds the last event.
func (j *journal) end(err error) {
	e := control.Event{Text: "lab is up", Last: true}
	if err != nil {
		e.Text, e.Error = "lab did not start", err.Error()
	}
	j.append(e)
}

func (j *journal) append(e control.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.At = time.Since(j.began)
	j.events = append(j.events, e)
	close(j.changed)
	j.changed = make(chan struct{})
}

// up reports whether the last event has come, and was a good one.
func (j *journal) up() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.events) == 0 {
		return false
	}
	last := j.events[len(j.events)-1]
	return last.Last && last.Error == ""
}

// follow calls f for every event up to the last.
func (j *journal) follow(ctx context.Context, f func(control.Event) error) error {
	for i := 0; ; {
		j.mu.Lock()
		events, changed := j.events[i:], j.changed
		j.mu.Unlock()
		for _, e := range events {
			if err := f(e); err != nil || e.Last {
				return err
			}
		}
		i += len(events)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}
