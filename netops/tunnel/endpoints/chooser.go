package endpoints

import (
	"cmp"
	"log/slog"
	"net/netip"
	"slices"
)

// Chooser chooses among the configured endpoints of one tunnel. Its methods must not be called concurrently.
type Chooser struct {
	Log    *slog.Logger
	Lookup Lookup
	Found  func()         // called when names were resolved in the background
	Sought netip.AddrPort // last endpoint that was set; zero: none

	search *search // for the configured endpoints; nil: not needed
}

// UnresolvedError means that no endpoint of the peer currently has an address.
type UnresolvedError struct{ cause error }

func (e *UnresolvedError) Error() string { return e.cause.Error() }
func (e *UnresolvedError) Unwrap() error { return e.cause }

// Choose returns the endpoint to set, or the zero value to keep the current one: an endpoint learned from the peer's
// packets, or one that still is among the configured ones. While their names are being resolved, the current one is
// kept as well. The configured endpoints are the same as at the last call, or not; current is zero if there is none.
func (c *Chooser) Choose(endpoints []string, same bool, current netip.AddrPort) (netip.AddrPort, error) {
	if len(endpoints) == 0 || same && current.IsValid() && c.search == nil {
		c.search = nil
		return netip.AddrPort{}, nil
	}
	switch sought := c.search; {
	case sought == nil || !slices.Equal(sought.endpoints, endpoints):
		c.search = c.begin(endpoints, nil)
	case sought.taken: // it found no address
		c.search = c.begin(endpoints, sought.err)
	}
	candidates, err := c.search.result()
	if len(candidates) == 0 {
		return netip.AddrPort{}, &UnresolvedError{err}
	}
	c.search = nil
	if err != nil {
		c.Log.Warn("some endpoints do not resolve", "error", err)
	}
	if slices.Contains(candidates, current) {
		return netip.AddrPort{}, nil
	}
	return candidates[0], nil
}

// Next returns the endpoint for a renewal: of the resolved candidates and of others, which are tried in turn with them
// at the same port, the one after the peer's last endpoint, also if another one was set. Addresses in taken come last.
// Without candidates it is the last endpoint.
func (c *Chooser) Next(candidates []netip.AddrPort, current netip.AddrPort, others, taken []netip.Addr) netip.AddrPort {
	candidates = freeFirst(alternate(candidates, others), taken)
	from := current
	if !slices.Contains(candidates, current) {
		from = cmp.Or(c.Sought, current)
	}
	return cmp.Or(after(from, candidates), current, c.Sought)
}
