// Package eventually has tests wait for a state.
package eventually

import (
	"errors"
	"testing"
	"time"
)

// Patience is the limit where the time is not tested: a busy machine is no fault.
const Patience = 5 * time.Minute

// Holds waits until a condition holds, and returns the time that this took. what names the condition in the error.
func Holds(t testing.TB, what string, within time.Duration, holds func() bool) time.Duration {
	t.Helper()
	missing := errors.New(what)
	return Succeeds(t, within, func() error {
		if holds() {
			return nil
		}
		return missing
	})
}

// Succeeds waits until a function has no error any more, and returns the time that this took.
func Succeeds(t testing.TB, within time.Duration, ask func() error) time.Duration {
	t.Helper()
	begin := time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return time.Since(begin)
		}
		if time.Since(begin) > within {
			t.Fatalf("not within %s: %v", within, err)
		}
		<-tick.C
	}
}
