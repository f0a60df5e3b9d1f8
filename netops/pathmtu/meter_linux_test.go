package pathmtu

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestMeterIgnoresShortLoss checks that the loss of large packets for some seconds does not change the result. A
// path that stays narrow is reported within seconds of the first measurement, and a wider one immediately.
func TestMeterIgnoresShortLoss(t *testing.T) {
	const link, small = 1500, 1300
	until := func(end time.Duration) func(int, time.Duration) bool {
		return func(_ int, now time.Duration) bool { return now < end }
	}
	for name, c := range map[string]struct {
		narrow func(measurement int, now time.Duration) bool
		turns  int           // by how much every other narrow size is larger
		want   []int         // reported sizes, in order
		within time.Duration // of the last one
	}{
		"wide":           {until(0), 0, []int{link}, 0},
		"narrow":         {until(time.Hour), 0, []int{small}, 5 * time.Second},
		"two sizes":      {until(time.Hour), 50, []int{small + 50}, 5 * time.Second},
		"lossy at first": {until(2 * time.Second), 0, []int{link}, 5 * time.Second},
		"lossy later":    {func(n int, _ time.Duration) bool { return n == 3 || n == 4 }, 0, []int{link}, 0},
		"lossy longer":   {until(10 * time.Second), 0, []int{small, link}, 20 * time.Second},
		"narrow later":   {func(_ int, now time.Duration) bool { return now > time.Minute }, 0, []int{link, small}, 110 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin, last := time.Now(), time.Duration(0)
				var m Meter
				var reported []int
				n := 0
				m.Changed = func() { reported, last = append(reported, m.Path().Size), time.Since(begin) }
				ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
				defer stop()
				m.run(ctx, func(int) (int, int, error) {
					n++
					if c.narrow(n, time.Since(begin)) {
						return small + n%2*c.turns, link, nil
					}
					return link, link, nil
				})
				if most := int(10*time.Minute/interval) + 20; n > most {
					t.Errorf("%d measurements, want %d at most", n, most)
				}
				if !slices.Equal(reported, c.want) || last > c.within {
					t.Errorf("reported %v, the last after %s; want %v within %s", reported, last, c.want, c.within)
				}
			})
		})
	}
}
