package membership

import (
	"slices"
	"testing"
	"time"
)

// begin is a time.
var begin = time.Unix(1e9, 0)

// renewalsOf returns after how many seconds the tunnel is renewed while each answer of the peer is missed. Every tenth
// of a second, it calls happens with the elapsed time; the peer sent a packet at the beginning.
func renewalsOf(during time.Duration, happens func(r *Renewal, passed time.Duration)) (times []float64) {
	var r Renewal
	r.Received(begin)
	for passed := time.Duration(0); passed <= during; passed += 100 * time.Millisecond {
		happens(&r, passed)
		if r.Due(begin.Add(passed)) {
			times = append(times, passed.Seconds())
		}
	}
	return times
}

// TestRenewal checks that the tunnel is renewed when no packets arrive from the peer, at first soon, then less often.
func TestRenewal(t *testing.T) {
	every := func(d time.Duration, what func(r *Renewal, now time.Time)) func(*Renewal, time.Duration) {
		return func(r *Renewal, passed time.Duration) {
			if passed > 0 && passed%d == 0 {
				what(r, begin.Add(passed))
			}
		}
	}
	bytes := int64(0)
	for _, c := range []struct {
		name    string
		happens func(r *Renewal, passed time.Duration)
		want    []float64
	}{
		{"nothing comes", func(*Renewal, time.Duration) {}, []float64{2, 4, 8, 12, 16, 20}},
		{"a client asks for the first time", func(r *Renewal, passed time.Duration) {
			if passed == 0 {
				r.Began(begin)
			}
		}, []float64{0.5, 1, 1.5, 2.3, 3.5, 5.3, 8, 12, 16, 20}},
		{"a client asks for the first time, and the second session is answered", func(r *Renewal, passed time.Duration) {
			switch passed {
			case 0:
				r.Began(begin)
			case 900 * time.Millisecond:
				r.Received(begin.Add(passed))
			}
		}, []float64{0.5, 2.9, 4.9, 8.9, 12.9, 16.9}},
		{"a client starts again, and its device has received packets", func(r *Renewal, passed time.Duration) {
			if passed == 0 {
				r.Began(begin)
				r.Counted(1000, begin)
			}
		}, []float64{2, 4, 8, 12, 16, 20}},
		{"nothing was asked", func(r *Renewal, _ time.Duration) { *r = Renewal{} }, nil},
		{"the device receives nothing", every(500*time.Millisecond, func(r *Renewal, now time.Time) { r.Counted(1000, now) }), []float64{2, 4, 8, 12, 16, 20}},
		{"a message now and then", every(1900*time.Millisecond, (*Renewal).Received), nil},
		{"a message after each renewal", func(r *Renewal, passed time.Duration) {
			if (passed+200*time.Millisecond)%(5*time.Second) == 0 {
				r.Received(begin.Add(passed))
			}
		}, []float64{2, 4, 6.8, 8.8, 11.8, 13.8, 16.8, 18.8}},
		{"only bytes come: the peer's helper is away", every(500*time.Millisecond, func(r *Renewal, now time.Time) { bytes += 100; r.Counted(bytes, now) }), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := renewalsOf(20*time.Second, c.happens); !slices.Equal(got, c.want) {
				t.Errorf("renewed after %v seconds, want %v", got, c.want)
			}
		})
	}
}
