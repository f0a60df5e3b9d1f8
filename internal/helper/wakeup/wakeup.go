// Package wakeup has signals without content: channels of size one, of which several sends before a receive are one.
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

// Merge returns a channel of size one that gets the signals of several others, until ctx ends.
func Merge(ctx context.Context, channels ...<-chan struct{}) <-chan struct{} {
	out := make(chan struct{}, 1)
	for _, c := range channels {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-c:
					Notify(out)
				}
			}
		}()
	}
	return out
}
