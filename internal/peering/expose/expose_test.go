package expose

import (
	"net/netip"
	"slices"
	"testing"

	"liqonet.io/liqonet/internal/records"
)

// TestWithHost: records do not depend on the order in which hosts were exposed.
func TestWithHost(t *testing.T) {
	one := records.Exposed{Host: netip.MustParseAddr("198.51.100.7"), Address: netip.MustParseAddr("10.70.128.2")}
	two := records.Exposed{Host: netip.MustParseAddr("198.51.100.10"), Address: netip.MustParseAddr("10.70.128.1")}
	for _, order := range [][]records.Exposed{{one, two}, {two, one}, {one, two, one}} {
		var got []records.Exposed
		for _, e := range order {
			got = withHost(got, e.Host, &e)
		}
		if !slices.Equal(got, []records.Exposed{one, two}) {
			t.Errorf("%v became %v", order, got)
		}
	}
	if got := withHost([]records.Exposed{one, two}, one.Host, nil); !slices.Equal(got, []records.Exposed{two}) {
		t.Errorf("without the first: %v", got)
	}
}
