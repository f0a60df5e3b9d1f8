//go:build linux

package helper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/helper/liveness"
	"liqonet.io/liqonet/internal/helper/wakeup"
	"liqonet.io/liqonet/internal/testbed/assert"
)

// passes are the times at which a loop calls its step.
type passes struct {
	health *liveness.Probes
	events chan struct{}
	err    error // what a step answers
	at     []time.Duration
	after  func(time.Duration)
}

// testLoop runs a test with a loop, in virtual time.
func testLoop(t *testing.T, do func(p *passes)) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		p := &passes{health: liveness.New(Stuck), events: make(chan struct{}, 1)}
		p.after = func(d time.Duration) {
			time.Sleep(d) //nolint:forbidigo // synctest's clock
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- Loop(ctx, p.health, slog.New(slog.DiscardHandler), func(context.Context) error {
				p.at = append(p.at, time.Since(begin))
				return p.err
			}, p.events)
		}()
		do(p)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the loop ended with: %v", err)
		}
	})
}

func (p *passes) expect(t *testing.T, when string, want ...time.Duration) {
	t.Helper()
	if !slices.Equal(p.at, want) {
		t.Errorf("%s: passes at %v, want %v", when, p.at, want)
	}
}

func TestLoopTurnsAtEventsAndNowAndThen(t *testing.T) {
	testLoop(t, func(p *passes) {
		p.after(2 * Resync)
		p.expect(t, "idle", 0, Resync, 2*Resync)
		p.after(time.Second)
		p.at = nil
		wakeup.Notify(p.events)
		p.after(0)
		p.expect(t, "an event, at once", 2*Resync+time.Second)
	})
}

// TestLoopBoundsItsPasses: however much happens, there is a pause between two passes, and one after the last event.
func TestLoopBoundsItsPasses(t *testing.T) {
	testLoop(t, func(p *passes) {
		p.after(time.Second)
		p.at = nil
		for range 1000 {
			wakeup.Notify(p.events)
			p.after(time.Millisecond)
		}
		p.after(passPause)
		if most := int(time.Second/passPause) + 6; len(p.at) > most || len(p.at) < most/2 {
			t.Errorf("%d passes in a second of events, want at most %d", len(p.at), most)
		}
		if last := p.at[len(p.at)-1]; last < 2*time.Second-time.Millisecond {
			t.Errorf("the last pass was at %s, before the last event", last)
		}
	})
}

// TestLoopIsPromptAfterRest: what comes shortly after the first event of all does not wait long.
func TestLoopIsPromptAfterRest(t *testing.T) {
	testLoop(t, func(p *passes) {
		for range 3 {
			p.after(time.Second)
			p.at = nil
			wakeup.Notify(p.events)
			p.after(time.Millisecond)
			wakeup.Notify(p.events)
			p.after(firstPause)
			if len(p.at) != 2 || p.at[1]-p.at[0] != firstPause {
				t.Errorf("passes at %v, want the second %s after the first", p.at, firstPause)
			}
		}
	})
}

func TestLoopTriesAgain(t *testing.T) {
	testLoop(t, func(p *passes) {
		p.err = errors.New("no")
		p.after(100 * time.Millisecond)
		if p.health.Failed() == nil {
			t.Error("ready after a failed pass")
		}
		p.after(30 * time.Second)
		p.expect(t, "failing", 0, 250*time.Millisecond, 750*time.Millisecond, 1750*time.Millisecond, 3750*time.Millisecond,
			7750*time.Millisecond, 15750*time.Millisecond, 23750*time.Millisecond)
		p.at, p.err = nil, nil
		p.after(3 * time.Second)
		p.expect(t, "not failing any more", 31750*time.Millisecond)
		assert.NoError(t, p.health.Failed())
		p.at, p.err = nil, fmt.Errorf("ConfigMap fabric: %w", ErrWaiting)
		wakeup.Notify(p.events)
		p.after(Resync - time.Second)
		p.expect(t, "waiting for a record is no error", 33100*time.Millisecond)
	})
}
