package guest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMissingOptions(t *testing.T) {
	wanted := "# comment with CONFIG_A=y\nCONFIG_A=y\nCONFIG_B=y\nCONFIG_C=n\nCONFIG_D=n\nCONFIG_E=\"text\"\n\n"
	taken := "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=y\nCONFIG_E=\"text\"\n"
	if diff := cmp.Diff([]string{"CONFIG_B=y", "CONFIG_C=n"}, missingOptions(wanted, taken)); diff != "" {
		t.Error(diff)
	}
}
