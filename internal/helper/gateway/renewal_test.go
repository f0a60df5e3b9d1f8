//go:build linux

package gateway

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestOneRenewal checks that while names do not resolve, there is one renewal of a tunnel, for any time, and that it
// ends with the first answer. The next silence starts another one.
func TestOneRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, ended := 0, 0
		g, _ := testEchoes(testView())
		e := g.tunnel(1)
		e.renewal.renew = func(ctx context.Context) error { begun++; <-ctx.Done(); ended++; return ctx.Err() }
		locked := func(f func(time.Time)) { g.mu.Lock(); defer g.mu.Unlock(); f(time.Now()) }
		for round := 1; round <= 2; round++ {
			locked(e.renewal.answered)
			synctest.Wait()
			for range 600 {
				time.Sleep(100 * time.Millisecond) //nolint:forbidigo // synctest's clock
				locked(e.renewIfDue)
			}
			synctest.Wait()
			if begun != round || ended != round-1 {
				t.Fatalf("%d renewals have begun and %d ended, want %d and %d", begun, ended, round, round-1)
			}
		}
		locked(e.renewal.answered)
		synctest.Wait()
	})
}
