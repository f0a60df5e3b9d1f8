package records_test

import (
	"net/netip"
	"testing"

	"liqonet.io/liqonet/internal/records"
)

func TestSwap(t *testing.T) {
	for _, test := range []struct{ address, into, want string }{
		{"10.80.0.7", "10.70.0.0/17", "10.70.0.7"},
		{"10.80.127.255", "10.70.0.0/17", "10.70.127.255"},
		{"10.244.1.5", "10.11.0.0/16", "10.11.1.5"},
		{"10.244.1.5", "192.168.7.32/27", "192.168.7.37"},
		{"10.244.1.5", "192.168.7.1/32", "192.168.7.1"},
		{"10.244.1.5", "0.0.0.0/0", "10.244.1.5"},
	} {
		got := records.Swap(netip.MustParseAddr(test.address), netip.MustParsePrefix(test.into))
		if got.String() != test.want {
			t.Errorf("%s into %s: %s, want %s", test.address, test.into, got, test.want)
		}
	}
}
