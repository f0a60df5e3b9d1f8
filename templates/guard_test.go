package templates

import (
	"net/netip"
	"testing"

	"liqonet.io/liqonet/internal/golden"
)

// The file is fed to nft by the tests of bench/pathtest.
func TestBootGuard(t *testing.T) {
	got, err := BootGuard([]netip.Prefix{
		netip.MustParsePrefix("10.71.0.0/16"), netip.MustParsePrefix("10.12.0.7/16"), netip.MustParsePrefix("10.71.0.0/16"),
	}, 6091)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "boot-guard.golden", got)
}

func TestBootGuardOfNothing(t *testing.T) {
	for name, peers := range map[string][]netip.Prefix{
		"no peers": nil, "no range": {{}}, "IPv6": {netip.MustParsePrefix("fd00::/64")},
	} {
		if text, err := BootGuard(peers, 6091); err == nil {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}
