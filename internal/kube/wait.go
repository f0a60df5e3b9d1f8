package kube

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// WaitError has the state in which a wait was when its context ended.
type WaitError struct {
	What    string // what was waited for
	Missing string // what was still missing
	Err     error  // why the wait ended, as a rule of the context
}

func (e *WaitError) Error() string {
	return fmt.Sprintf("wait for %s: %s: %v", e.What, e.Missing, e.Err)
}

// Unwrap returns why the wait ended.
func (e *WaitError) Unwrap() error { return e.Err }

// checkEvery is the interval at which a wait repeats its check, which may depend on more than the objects: on the time,
// or on what another watch has seen.
const checkEvery = time.Second

// Wait watches the selected objects until check finds nothing missing. It calls check immediately, after changes and
// every second. check returns what is missing, "" to end the wait, or an error that ends it. When ctx ends first the
// error is a *WaitError.
func Wait[T Object](ctx context.Context, c *Cluster, sel Selection, what string, check func(all []T) (missing string, err error)) error {
	sel.Every = checkEvery
	return waitIn(ctx, c, Watch[T](ctx, c, sel), what, check)
}

// waitIn is Wait with an existing watch.
func waitIn[T Object](ctx context.Context, c *Cluster, watch iter.Seq2[[]T, error], what string, check func([]T) (string, error)) error {
	var last error
	missing := "nothing seen yet"
	for all, err := range watch {
		if last = err; err != nil {
			missing = err.Error()
			continue
		}
		if missing, err = check(all); err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		if missing == "" {
			return nil
		}
	}
	switch {
	case ctx.Err() != nil:
		return &WaitError{What: what, Missing: missing, Err: context.Cause(ctx)}
	case errors.Is(last, ErrLater):
		return fmt.Errorf("wait for %s: %w", what, last)
	}
	return fmt.Errorf("wait for %s in cluster %q: %w", what, c.Context, last)
}
