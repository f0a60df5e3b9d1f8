//go:build linux

package node

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/netops/kernel"
)

func TestSurroundingsOf(t *testing.T) {
	view := view{
		fabric: &records.Fabric{
			PodCIDRs: parsed.Prefixes("10.244.0.0/16"), ServiceCIDRs: parsed.Prefixes("10.96.0.0/16"),
			InternalCIDRs: parsed.Prefixes("10.80.0.0/16"), ExternalCIDRs: parsed.Prefixes("10.70.0.0/16"),
		},
	}
	found := kernel.Surroundings{
		Routes:    parsed.Prefixes("10.9.0.0/24", "10.244.3.0/24", "10.0.0.0/8", "10.80.5.0/24", "10.71.0.0/16", "169.254.0.0/16", "203.0.113.0/24"),
		Addresses: parsed.Addresses("172.31.1.11", "127.0.0.1", "10.80.0.7", "10.96.0.10"),
	}
	internal := netip.MustParseAddr("10.80.0.7")
	for name, c := range map[string]struct {
		peerings []records.Peering
		want     string
	}{
		"without a peering": {want: "10.0.0.0/8 route, 10.9.0.0/24 route, 10.71.0.0/16 route, 10.80.5.0/24 route, 172.31.1.11/32 address, 203.0.113.0/24 route"},
		"with a peering": {peerings: []records.Peering{{Name: "b", Peer: records.Peer{PodCIDRs: []records.Mapping{{Seen: netip.MustParsePrefix("10.71.0.0/16")}}}}},
			want: "10.0.0.0/8 route, 10.9.0.0/24 route, 172.31.1.11/32 address, 203.0.113.0/24 route"},
	} {
		view.Peerings = c.peerings
		s := records.SurroundingsOf(found.Routes, found.Addresses, ownRanges(view, internal))
		got := make([]string, len(s.Ranges))
		for i, r := range s.Ranges {
			got[i] = fmt.Sprintf("%s %s", r.Range, r.Use)
		}
		if diff := cmp.Diff(c.want, strings.Join(got, ", ")); diff != "" || s.More {
			t.Errorf("%s: more %v\n%s", name, s.More, diff)
		}
		if _, err := records.Encode(records.Node{Version: records.SchemaVersion, Name: "n", Surroundings: s}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
