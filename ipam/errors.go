package ipam

import (
	"errors"
	"fmt"
)

// ErrNoneFree is what an Acquire that finds no room wraps.
var ErrNoneFree = errors.New("no free addresses")

// ConflictError is a reservation refused because another one stands.
type ConflictError struct {
	Wanted, Held Reservation
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("reserve %s for %s: conflict with %s %s", e.Wanted.Range, e.Wanted.Use(), e.Held.Use(), e.Held.Range)
}

// InUseError is a release refused because an address inside the range is held.
type InUseError struct {
	Range, Inside Reservation
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("release %s of %s: %s %s is inside", e.Range.Range, e.Range.Use(), e.Inside.Use(), e.Inside.Range.Addr())
}
