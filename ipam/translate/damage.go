package translate

import (
	"errors"
	"maps"
	"slices"

	"liqonet.io/liqonet/internal/records"
)

// DamagedError means that the record of a peering cannot be read, so that its addresses cannot be translated.
type DamagedError struct {
	Peer string
	Err  error // names the ConfigMap
}

func (e *DamagedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *DamagedError) Unwrap() error { return e.Err }

// Hint returns advice for a record that cannot be read.
func (e *DamagedError) Hint() string { return records.DamageHint }

// Damage returns the errors of all peerings whose records cannot be read, or nil if there are none.
func (c Cluster) Damage() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.damaged)) {
		errs = append(errs, c.damaged[name])
	}
	return errors.Join(errs...)
}
