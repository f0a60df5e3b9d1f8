package translate

import (
	"errors"
	"maps"
	"slices"

	"liqonet.io/liqonet/internal/records"
)

// DamagedError says that the record of a peering cannot be read. Until it can, an answer would be a guess.
type DamagedError struct {
	Peer string
	Err  error // names the ConfigMap
}

func (e *DamagedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *DamagedError) Unwrap() error { return e.Err }

// Hint says what helps.
func (e *DamagedError) Hint() string { return records.DamageHint }

// Damage tells of all peerings whose records cannot be read; nil: there are none.
func (c Cluster) Damage() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.damaged)) {
		errs = append(errs, c.damaged[name])
	}
	return errors.Join(errs...)
}
