// Package wakeup provides signals without content, which are channels of size one, of which several sends before a
// receive are one, and a sleep that ends with a context.
package wakeup

import (
	"context"
	"time"
)

// Notify sends a signal to a channel of size one, unless one is pending.
func Notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Sleep waits for a time, and reports false if ctx ends before.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
