package records

import (
	"errors"
	"fmt"
	"net/netip"
)

// Use says how a node knows addresses that it uses.
type Use string

// The uses.
const (
	UseRoute   Use = "route"   // it has a route to them
	UseAddress Use = "address" // they are its own
)

// Surroundings are the addresses that a node uses besides those of pods, Services and peers. Peers must not be given
// them. The zero value: none.
type Surroundings struct {
	// Ranges are at most MaxSurroundings, sorted.
	Ranges []UsedRange `json:"ranges,omitempty"`
	// More says that there were more.
	More bool `json:"more,omitempty"`
}

// IsZero reports whether there are none.
func (s Surroundings) IsZero() bool { return len(s.Ranges) == 0 && !s.More }

// MaxSurroundings bounds what a node reports.
const MaxSurroundings = 64

// WidestAvoided is the length of the widest range that peers are not given because a node uses it. A route for more, as
// one for all of 10.0.0.0/8, does not say that all of it is in use, and would leave nothing.
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
