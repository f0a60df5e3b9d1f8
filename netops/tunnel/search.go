package tunnel

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
)

// search looks for the addresses of endpoints, in the background: a name server that does not answer holds up nothing
// but the tunnel that needs it.
type search struct {
	endpoints []string
	before    error         // of the search before this one, of the same endpoints
	ended     chan struct{} // closed at the end, when what follows is set
	found     []netip.AddrPort
	err       error
	taken     bool // the result was asked for
}

// begin begins a search. One that needs no name server has ended when it returns.
func (d *Device) begin(endpoints []string, before error) *search {
	s := &search{endpoints: endpoints, before: before, ended: make(chan struct{})}
	find := d.names // a test sets others later
	look := func() {
		s.found, s.err = resolve(context.Background(), find, endpoints)
		close(s.ended)
	}
	if !slices.ContainsFunc(endpoints, isName) {
		look()
		return s
	}
	go func() {
		look()
		if len(s.found) > 0 || before == nil { // else the pauses of a pass that is tried again hold
			d.found()
		}
	}()
	return s
}

// isName reports whether only a name server knows the address of an endpoint.
func isName(endpoint string) bool {
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		return false
	}
	_, err = netip.ParseAddr(host)
	return err != nil
}

// ErrSearching says that the names of the peer's endpoints are being looked up. It has no endpoint meanwhile, or the
// one of before.
var ErrSearching = errors.New("the names of the endpoints are being looked up")

// result returns what was found. Before the end, the error is that of the search before.
func (s *search) result() ([]netip.AddrPort, error) {
	select {
	case <-s.ended:
		s.taken = true
		return s.found, s.err
	default:
		return nil, cmp.Or(s.before, ErrSearching)
	}
}
