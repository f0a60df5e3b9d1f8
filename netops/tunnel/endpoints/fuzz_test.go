package endpoints

import (
	"context"
	"errors"
	"net/netip"
	"testing"
)

// FuzzEndpoint resolves arbitrary endpoints: the result is an address with a port, or an error.
func FuzzEndpoint(f *testing.F) {
	for _, text := range []string{"192.0.2.1:51840", "[2001:db8::1]:1", "gateway.example:65536", "::1", ":0", "a:b:c", "[::ffff:192.0.2.1%eth0]:9"} {
		f.Add(text)
	}
	unknown := errors.New("unknown")
	find := func(_ context.Context, _, host string) ([]netip.Addr, error) {
		if len(host)%2 == 0 {
			return nil, unknown
		}
		return []netip.Addr{netip.MustParseAddr("192.0.2.7")}, nil
	}
	f.Fuzz(func(t *testing.T, endpoint string) {
		found, err := Resolve(t.Context(), find, []string{endpoint})
		if (err == nil) != (len(found) == 1) {
			t.Errorf("%q: %v, %v", endpoint, found, err)
		}
		for _, a := range found {
			if !a.Addr().IsValid() || a.Addr().Is4In6() || a.Port() == 0 {
				t.Errorf("%q: %v", endpoint, a)
			}
		}
	})
}
