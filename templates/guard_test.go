package templates

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The file is fed to nft by the tests of bench/pathtest.
func TestBootGuard(t *testing.T) {
	got, err := BootGuard([]netip.Prefix{
		netip.MustParsePrefix("10.71.0.0/16"), netip.MustParsePrefix("10.12.0.7/16"), netip.MustParsePrefix("10.71.0.0/16"),
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "boot-guard.golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (write it with -update):\n%s", path, diff)
	}
}

func TestBootGuardOfNothing(t *testing.T) {
	for name, peers := range map[string][]netip.Prefix{
		"no peers": nil, "no range": {{}}, "IPv6": {netip.MustParsePrefix("fd00::/64")},
	} {
		if text, err := BootGuard(peers); err == nil {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}
