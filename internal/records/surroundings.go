package records

import (
	"errors"
	"fmt"
	"net/netip"
)

// Use is the way in which a node uses addresses.
type Use string

// The uses.
const (
	UseRoute   Use = "route"   // the node has a route to them
	UseAddress Use = "address" // they are the node's own
)

// Surroundings are the addresses that a node uses besides those of pods, Services and peers. They must not be allocated
// to peers. The zero value: none.
type Surroundings struct {
	// Ranges has at most MaxSurroundings entries, sorted.
	Ranges []UsedRange `json:"ranges,omitempty"`
	// More is set if entries were omitted.
	More bool `json:"more,omitempty"`
}

// IsZero reports whether the node uses no such addresses.
func (s Surroundings) IsZero() bool { return len(s.Ranges) == 0 && !s.More }

// MaxSurroundings limits the number of ranges in a report.
const MaxSurroundings = 64

// WidestAvoided is the shortest prefix length of a used range that is not allocated to peers. A route for a wider
// range, such as 10.0.0.0/8, does not imply that all of it is in use, and avoiding it would leave no free range.
const WidestAvoided = 12

// UsedRange is a range that a node uses.
type UsedRange struct {
	Range netip.Prefix `json:"range"`
	Use   Use          `json:"use"`
}

func (s Surroundings) validate() error {
	if len(s.Ranges) > MaxSurroundings {
		return fmt.Errorf("%d ranges: want at most %d", len(s.Ranges), MaxSurroundings)
	}
	return each(s.Ranges, func(r UsedRange) error {
		return errors.Join(validateCIDR(r.Range), unless(r.Use == UseRoute || r.Use == UseAddress, "range %s: unknown use %q", r.Range, string(r.Use)))
	})
}
