//go:build linux

package node

import (
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/helper"
)

// TestCached checks that the routing table is read again after cacheLife, for other ranges, and after an error.
func TestCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, more := []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}, []netip.Prefix{netip.MustParsePrefix("10.245.0.0/16")}
		var s cached[int]
		for i, step := range []struct {
			pause  time.Duration
			within []netip.Prefix
			result int   // result of reading the routing table
			err    error // error of reading it
			want   int
		}{
			{0, pods, 0, nil, 0},
			{helper.Resync, pods, 1400, nil, 0}, // the absence of a route is cached too
			{cacheLife, pods, 1450, nil, 1450},
			{cacheLife / 2, pods, 1400, nil, 1450},
			{0, more, 0, errors.New("netlink: busy"), 0},
			{0, more, 1300, nil, 1300},
			{0, pods, 1400, nil, 1400},
		} {
			<-time.After(step.pause)
			got, err := s.get(step.within, func([]netip.Prefix) (int, error) { return step.result, step.err })
			if got != step.want || !errors.Is(err, step.err) {
				t.Errorf("step %d: %d, %v, want %d, %v", i, got, err, step.want, step.err)
			}
		}
	})
}
