package e2e

import (
	"context"
	"testing"
	"time"
)

// patience bounds how long a test waits for a state; look is how often it asks.
const (
	patience = time.Minute
	look     = 200 * time.Millisecond
)

// await waits until a state holds, and fails the test with what was seen last when it does not.
func await(ctx context.Context, t *testing.T, holds func() bool, last func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("not in %s: %s", patience, last())
		case <-tick.C:
		}
	}
}
