// Package wait has tests wait for a state.
package wait

import (
	"errors"
	"testing"
	"time"
)

// Timeout is the limit where the time is not tested: it leaves room for a busy machine.
const Timeout = 5 * time.Minute

// Until waits until a condition holds, and returns the time that this took. what names the condition in the error.
func Until(t testing.TB, what string, within time.Duration, holds func() bool) time.Duration {
	t.Helper()
	missing := errors.New(what)
	return Succeeds(t, within, func() error {
		if holds() {
			return nil
		}
		return missing
	})
}

// Succeeds waits until a function returns no error, and returns the time that this took.
func Succeeds(t testing.TB, within time.Duration, try func() error) time.Duration {
	t.Helper()
	begin := time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return time.Since(begin)
		}
		if time.Since(begin) > within {
			t.Fatalf("not within %s: %v", within, err)
		}
		<-tick.C
	}
}
