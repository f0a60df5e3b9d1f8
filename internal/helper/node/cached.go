//go:build linux

package node

import (
	"net/netip"
	"slices"
	"time"

	"liqonet.io/liqonet/internal/helper"
)

// cacheLife is the lifetime of a value read from a node's kernel: to read all routes takes longer than the rest of a
// pass. Changes in between are detected by the packets that measure each hop, and by liqoctl, which checks when peers
// are connected.
const cacheLife = 20 * helper.Resync

// cached is a value read for some ranges. The zero value is empty.
type cached[T any] struct {
	of    []netip.Prefix
	value T
	read  time.Time
}

// get returns the cached value for these ranges, else reads it.
func (r *cached[T]) get(of []netip.Prefix, read func([]netip.Prefix) (T, error)) (T, error) {
	if !r.read.IsZero() && time.Since(r.read) < cacheLife && slices.Equal(r.of, of) {
		return r.value, nil
	}
	value, err := read(of)
	if err == nil {
		*r = cached[T]{slices.Clone(of), value, time.Now()}
	}
	return value, err
}
