package ipam

import (
	"errors"
	"fmt"
)

// ErrNoneFree is wrapped by the errors of Acquire and AcquireAddress when no free range or address is left.
var ErrNoneFree = errors.New("no free addresses")

// ConflictError means that a reservation was rejected because it overlaps an existing one.
type ConflictError struct {
	Wanted, Held Reservation
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("reserve %s for %s: conflict with %s %s", e.Wanted.Range, e.Wanted.Use(), e.Held.Use(), e.Held.Range)
}

// InUseError means that a release was rejected because an address inside the range is reserved.
type InUseError struct {
	Range, Inside Reservation
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("release %s of %s: %s %s is inside", e.Range.Range, e.Range.Use(), e.Inside.Use(), e.Inside.Range.Addr())
}
