package records_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/internal/records"
)

func TestSurroundings(t *testing.T) {
	want := records.Surroundings{Version: records.SchemaVersion, More: true, Ranges: []records.UsedRange{
		{Range: netip.MustParsePrefix("10.9.0.0/16"), Use: records.UseRoute},
		{Range: netip.MustParsePrefix("10.9.8.7/32"), Use: records.UseAddress},
	}}
	text, err := records.Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := records.Decode[records.Surroundings](text)
	if diff := cmp.Diff(want, got, comparable); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, bad := range []string{
		"version: 1\nranges: [{range: 10.9.8.7/16, use: route}]\n",
		"version: 1\nranges: [{range: 'fd00::/64', use: route}]\n",
		"version: 1\nranges: [{range: 10.9.0.0/16, use: \"\\e[2J\"}]\n",
		"version: 1\nranges: [" + strings.Repeat("{range: 10.9.0.0/16, use: route},", records.MaxSurroundings+1) + "]\n",
		"version: 2\n",
	} {
		if _, err := records.Decode[records.Surroundings](bad); err == nil {
			t.Errorf("accepted: %.60s", bad)
		}
	}
}
