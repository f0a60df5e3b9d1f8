//go:build linux

package helper

import (
	"net/netip"
	"slices"
	"time"
)

// routeSizesLife is how long sizes of routes count as known: to read a table of ten thousand routes takes longer than
// all else of a pass. What changes in between is seen by the packets that measure each hop.
const routeSizesLife = 20 * resync

// routeSizes remembers how large packets the routes to some ranges carry. The zero value knows nothing.
type routeSizes struct {
	within []netip.Prefix
	mtu    int // bytes; 0: there is no such route
	read   time.Time
}

// smallest returns what was read for these ranges lately, else reads it.
func (s *routeSizes) smallest(within []netip.Prefix, read func([]netip.Prefix) (int, error)) (int, error) {
	if !s.read.IsZero() && time.Since(s.read) < routeSizesLife && slices.Equal(s.within, within) {
		return s.mtu, nil
	}
	mtu, err := read(within)
	if err != nil {
		return 0, err
	}
	*s = routeSizes{within: slices.Clone(within), mtu: mtu, read: time.Now()}
	return mtu, nil
}
