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

func TestSurroundings(t *testing.T) {
	want := records.Node{
		Version: records.SchemaVersion, Name: "n1", Internal: netip.MustParseAddr("10.80.0.7"),
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
		text := fmt.Sprintf(`{"version":1,"name":"n1","internal":"10.80.0.7","surroundings":{"ranges":[%s]}}`, bad)
		if _, err := records.Decode[records.Node](text); err == nil {
			t.Errorf("accepted: %.120s", text)
		}
	}
}

// TestLongestReport: a report with the maximum of every field is within the size limit.
func TestLongestReport(t *testing.T) {
	n := records.Node{
		Version: records.SchemaVersion, Name: strings.Repeat("n", 253), Internal: netip.MustParseAddr("10.80.255.255"),
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
