package pathtest

import (
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/require"
)

// bootGuard returns the example of docs/connect.md with other values: the ranges of peers and the port of the overlay.
func bootGuard(t *testing.T, overlayPort uint16, peers ...netip.Prefix) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/connect.md")
	require.NoError(t, err)
	example := regexp.MustCompile(`(?m)^    table ip liqonet-boot\n(?:    .*\n)+`).FindString(string(page))
	ranges := strings.Trim(strings.ReplaceAll(fmt.Sprint(peers), " ", ", "), "[]")
	for pattern, value := range map[string]string{
		`elements = \{ .* \}`: "elements = { " + ranges + " }",
		`udp dport \d+ `:      fmt.Sprintf("udp dport %d ", overlayPort),
	} {
		field := regexp.MustCompile(pattern)
		if len(field.FindAllString(example, -1)) != 1 {
			t.Fatalf("the example has not one %s:\n%s", pattern, example)
		}
		example = field.ReplaceAllString(example, value)
	}
	return example
}
