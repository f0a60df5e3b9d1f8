package records_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
)

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}

func TestSurroundings(t *testing.T) {
	want := records.Node{
		Version: records.SchemaVersion, Name: "n1", Number: 7,
		Surroundings: records.Surroundings{More: true, Ranges: []records.UsedRange{
			{Range: netip.MustParsePrefix("10.9.0.0/16"), Use: records.UseRoute},
			{Range: netip.MustParsePrefix("10.9.8.7/32"), Use: records.UseAddress},
		}},
	}
	text, err := records.Encode(want)
	require.NoError(t, err)
	got, err := records.Decode[records.Node](text)
	if diff := cmp.Diff(want, got, comparable); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, bad := range []string{
		`{"range":"10.9.8.7/16","use":"route"}`,
		`{"range":"fd00::/64","use":"route"}`,
		`{"range":"10.9.0.0/16","use":"\u001b[2J"}`,
		strings.Repeat(`{"range":"10.9.0.0/16","use":"route"},`, records.MaxSurroundings) + `{"range":"10.9.0.0/16","use":"route"}`,
	} {
		text := fmt.Sprintf(`{"version":1,"name":"n1","number":7,"surroundings":{"ranges":[%s]}}`, bad)
		if _, err := records.Decode[records.Node](text); err == nil {
			t.Errorf("accepted: %.120s", text)
		}
	}
}

// TestLongestReport: a report with the maximum of every field is within the size limit.
func TestLongestReport(t *testing.T) {
	n := records.Node{
		Version: records.SchemaVersion, Name: strings.Repeat("n", 253), Number: 8388606,
		Refused: map[string]string{}, Witness: map[records.GatewayID]string{}, OverlaySources: map[records.GatewayID]netip.Addr{},
	}
	for i := range 1000 {
		n.Pods = append(n.Pods, netip.AddrFrom4([4]byte{172, 100, 100 + byte(i/256), byte(i)}))
	}
	for i := range records.MaxSurroundings {
		n.Surroundings.Ranges = append(n.Surroundings.Ranges, records.UsedRange{
			Range: netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 100, 100, byte(i)}), 32), Use: records.UseAddress,
		})
	}
	for i := range 300 {
		name := fmt.Sprintf("cluster-with-a-long-name-%03d", i)
		id := records.GatewayID{Peering: name, Number: 1 + i%2}
		n.Peerings, n.OverlaySources[id] = append(n.Peerings, name), netip.MustParseAddr("172.31.100.100")
		n.Witness[id] = "no answer from the gateway"
	}
	text, err := records.Encode(n)
	if t.Logf("%d bytes", len(text)); err != nil {
		t.Error(err)
	}
}

// TestWideRoutesHideNothing checks that ranges that are too wide to be avoided do not replace the ranges within, and
// that two adjacent routes are not merged into such a range.
func TestWideRoutesHideNothing(t *testing.T) {
	routes := prefixes("10.0.0.0/8", "10.9.0.0/24", "172.16.0.0/12", "172.0.0.0/12")
	var got []netip.Prefix
	for _, r := range records.SurroundingsOf(routes, nil, nil).Ranges {
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
		var routes []netip.Prefix
		var addresses []netip.Addr
		for i := range c.many {
			routes = append(routes, c.routes(i))
			addresses = append(addresses, netip.AddrFrom4([4]byte{172, 16, byte(i >> 8), byte(i)}))
		}
		s := records.SurroundingsOf(routes, addresses, nil)
		if _, err := records.Encode(records.Node{Version: records.SchemaVersion, Name: "n", Surroundings: s}); err != nil || len(s.Ranges) == 0 || c.more && !s.More {
			t.Errorf("%s: %d ranges, more %v, %v", name, len(s.Ranges), s.More, err)
		}
		for _, r := range routes {
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
