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

// Succeeds waits until a function returns no error, and returns the time that this took. It pauses for at least as long
// as a try takes, which may start processes: in a guest these leave no processor time to what they wait for. Long waits
// have longer pauses, of two in a hundred.
func Succeeds(t testing.TB, within time.Duration, try func() error) time.Duration {
	t.Helper()
	for begin := time.Now(); ; {
		tried := time.Now()
		err := try()
		passed := time.Since(begin)
		if err == nil {
			return passed
		}
		if passed > within {
			t.Fatalf("not within %s: %v", within, err)
		}
		<-time.After(max(10*time.Millisecond, time.Since(tried), passed/50))
	}
}
