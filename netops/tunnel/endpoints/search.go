package endpoints

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"slices"

	"liqonet.io/liqonet/netops/tunnel"
)

// search resolves the addresses of endpoints in the background, so that a name server that does not answer affects only
// the tunnel that needs it.
type search struct {
	endpoints []string
	before    error         // of the previous search for the same endpoints
	ended     chan struct{} // closed at the end, after the following fields are set
	found     []netip.AddrPort
	err       error
	taken     bool // the result was read
}

// begin starts a search. Without names it has ended when begin returns.
func (c *Chooser) begin(endpoints []string, before error) *search {
	s := &search{endpoints: endpoints, before: before, ended: make(chan struct{})}
	find := c.Lookup // tests replace it later
	look := func() {
		s.found, s.err = Resolve(context.Background(), find, endpoints)
		close(s.ended)
	}
	if !slices.ContainsFunc(endpoints, isName) {
		look()
		return s
	}
	go func() {
		look()
		if len(s.found) > 0 || before == nil { // otherwise the backoff of failed passes applies
			c.Found()
		}
	}()
	return s
}

// isName reports whether an endpoint requires a name server.
func isName(endpoint string) bool {
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		return false
	}
	_, err = netip.ParseAddr(host)
	return err != nil
}

// result returns the addresses. Before the end, the error is that of the previous search.
func (s *search) result() ([]netip.AddrPort, error) {
	select {
	case <-s.ended:
		s.taken = true
		return s.found, s.err
	default:
		return nil, cmp.Or(s.before, tunnel.ErrSearching)
	}
}
