//go:build linux

package helper

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops/kernel"
)

func TestSurroundingsOf(t *testing.T) {
	view := nodeView{
		fabric: &records.Fabric{
			PodCIDRs: prefixes("10.244.0.0/16"), ServiceCIDRs: prefixes("10.96.0.0/16"),
			InternalCIDR: netip.MustParsePrefix("10.80.0.0/16"), ExternalCIDR: netip.MustParsePrefix("10.70.0.0/16"),
		},
	}
	found := kernel.Surroundings{
		Routes:    prefixes("10.9.0.0/24", "10.244.3.0/24", "10.0.0.0/8", "10.80.5.0/24", "10.71.0.0/16", "169.254.0.0/16", "203.0.113.0/24"),
		Addresses: addrs("172.31.1.11", "127.0.0.1", "10.80.0.7", "10.96.0.10"),
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
		s := surroundingsOf(found, ownRanges(view, internal))
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

// TestWideRoutesHideNothing checks that ranges that are too wide to be avoided do not replace the ranges within, and
// that two adjacent routes are not merged into such a range.
func TestWideRoutesHideNothing(t *testing.T) {
	found := kernel.Surroundings{Routes: prefixes("10.0.0.0/8", "10.9.0.0/24", "172.16.0.0/12", "172.0.0.0/12")}
	var got []netip.Prefix
	for _, r := range surroundingsOf(found, nil).Ranges {
		got = append(got, r.Range)
	}
	want := prefixes("10.0.0.0/8", "10.9.0.0/24", "172.0.0.0/12", "172.16.0.0/12")
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestSurroundingsAreFew checks that the record always fits.
func TestSurroundingsAreFew(t *testing.T) {
	for name, c := range map[string]struct {
		routes      func(i int) netip.Prefix
		many        int
		more, whole bool
	}{
		"one network": {func(i int) netip.Prefix {
			return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)}), 32)
		}, 5000, false, true},
		"networks all over": {func(i int) netip.Prefix {
			return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(1 + i%100), byte(i), 0, 0}), 24)
		}, 5000, true, false},
	} {
		var found kernel.Surroundings
		for i := range c.many {
			found.Routes = append(found.Routes, c.routes(i))
			found.Addresses = append(found.Addresses, netip.AddrFrom4([4]byte{172, 16, byte(i >> 8), byte(i)}))
		}
		s := surroundingsOf(found, nil)
		if _, err := records.Encode(records.Node{Version: records.SchemaVersion, Name: "n", Surroundings: s}); err != nil || len(s.Ranges) == 0 || c.more && !s.More {
			t.Errorf("%s: %d ranges, more %v, %v", name, len(s.Ranges), s.More, err)
		}
		for _, r := range found.Routes {
			covered := false
			for _, have := range s.Ranges {
				covered = covered || have.Use == records.UseRoute && have.Range.Overlaps(r)
			}
			if !covered && c.whole {
				t.Errorf("%s: %s is missing", name, r)
				break
			}
		}
	}
}
