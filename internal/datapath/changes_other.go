//go:build !linux

package datapath

import "liqonet.io/liqonet/internal/records"

// Changes returns none: see the package.
func Changes(records.Set, records.Set) []Change { return nil }
