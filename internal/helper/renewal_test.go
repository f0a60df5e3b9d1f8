//go:build linux

package helper

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// renewalsOf returns after how many seconds the tunnel is renewed while each answer of the peer is missed. Every tenth
// of a second, it calls happens with the elapsed time; the peer sent a packet at the beginning.
func renewalsOf(t *testing.T, during time.Duration, happens func(r *renewal, passed time.Duration)) (times []float64) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		begin := time.Now()
		r := &renewal{log: slog.New(slog.DiscardHandler)}
		r.missed() // no effect without a tunnel and a request
		r.use(func(context.Context) error { times = append(times, time.Since(begin).Seconds()); return nil })
		r.missed()
		r.answered()
		for range int(during / (100 * time.Millisecond)) {
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // synctest's clock
			happens(r, time.Since(begin))
			r.missed()
			synctest.Wait()
		}
	})
	return times
}

// TestRenewal checks that the tunnel is renewed when no packets arrive from the peer, at first soon, then less often.
func TestRenewal(t *testing.T) {
	every := func(d time.Duration, what func(r *renewal)) func(*renewal, time.Duration) {
		return func(r *renewal, passed time.Duration) {
			if passed%d == 0 {
				what(r)
			}
		}
	}
	bytes := int64(0)
	for _, c := range []struct {
		name    string
		happens func(r *renewal, passed time.Duration)
		want    []float64
	}{
		{"nothing comes", func(*renewal, time.Duration) {}, []float64{2, 4, 8, 12, 16, 20}},
		{"WireGuard receives nothing", every(tunnelEvery, func(r *renewal) { r.counted(1000) }), []float64{2, 4, 8, 12, 16, 20}},
		{"an answer now and then", every(1900*time.Millisecond, func(r *renewal) { r.answered() }), nil},
		{"an answer after each renewal", func(r *renewal, passed time.Duration) {
			if (passed+200*time.Millisecond)%(5*time.Second) == 0 {
				r.answered()
			}
		}, []float64{2, 4, 6.8, 8.8, 11.8, 13.8, 16.8, 18.8}},
		{"answers late, and echoes of the peer in between", func(r *renewal, passed time.Duration) {
			every(1900*time.Millisecond, func(r *renewal) { r.echoed() })(r, passed)
			every(7*time.Second, func(r *renewal) { r.answered() })(r, passed)
		}, nil},
		{"only bytes come: the peer's helper is away", every(tunnelEvery, func(r *renewal) { bytes += 100; r.counted(bytes) }), nil},
		{"echoes of the peer and no answer", every(time.Second, func(r *renewal) { r.echoed() }), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := renewalsOf(t, 20*time.Second, c.happens); !slices.Equal(got, c.want) {
				t.Errorf("renewed after %v seconds, want %v", got, c.want)
			}
		})
	}
}

// TestOneRenewal checks that while names do not resolve, there is one renewal of a tunnel, for any time, and that it
// ends with the first answer. The next silence starts another one.
func TestOneRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, ended := 0, 0
		r := &renewal{log: slog.New(slog.DiscardHandler)}
		r.use(func(ctx context.Context) error { begun++; <-ctx.Done(); ended++; return ctx.Err() })
		for round := 1; round <= 2; round++ {
			r.answered()
			synctest.Wait()
			for range 600 {
				time.Sleep(100 * time.Millisecond) //nolint:forbidigo // synctest's clock
				r.missed()
			}
			synctest.Wait()
			if begun != round || ended != round-1 {
				t.Fatalf("%d renewals have begun and %d ended, want %d and %d", begun, ended, round, round-1)
			}
		}
		r.answered()
		synctest.Wait()
	})
}
