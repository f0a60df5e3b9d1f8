// Package wakeup has signals without content: channels of size one, of which several sends before a receive are one.
package wakeup

import "context"

// Notify sends a signal to a channel of size one, unless one is pending.
func Notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
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
