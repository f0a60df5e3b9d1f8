package kernel_test

import (
	"slices"
	"testing"

	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/netops/kernel"
)

func TestLeftoversAreListedAndRemoved(t *testing.T) {
	ns := netns.New(t)
	verify := func(remove bool) (left []string) {
		t.Helper()
		err := ns.Do(func() (err error) {
			left, err = kernel.Leftovers(remove)
			return err
		})
		require.NoError(t, err)
		return left
	}
	if left := verify(false); len(left) > 0 {
		t.Fatalf("in a new namespace: %q", left)
	}
	ns.IP("link set lo up")
	ns.IP("rule add priority 7600 table 7600 protocol 76")
	ns.IP("route add unreachable 10.11.0.0/16 table 7600 protocol 76 metric 4000")
	ns.IP("rule add priority 500 table 500") // a foreign rule
	ns.Run("nft", "add table ip liqonet")
	ns.Run("nft", "add table ip6 liqonet")
	ns.IP("addr add 10.80.0.7/32 dev lo label lo:lqn")
	ns.Run("nft", "add table ip liqonet-boot")
	ns.Run("nft", "add table ip another")
	want := []string{"address 10.80.0.7/32 dev lo", "nftables table ip liqonet", "nftables table ip6 liqonet", "nftables table liqonet-boot", "route 10.11.0.0/16 unreachable table 7600 metric 4000", "rule 7600 table 7600"}
	for range 2 { // reading changes nothing
		left := verify(false)
		slices.Sort(left)
		if !slices.Equal(left, want) {
			t.Errorf("left %q, want %q", left, want)
		}
	}
	if left := verify(true); len(left) > 0 {
		t.Errorf("removed, and left %q", left)
	}
	if got := ns.Run("nft", "list", "tables"); got != "table ip another\n" {
		t.Errorf("tables %q", got)
	}
	if got := ns.IP("rule show priority 500"); got == "" {
		t.Error("a rule of somebody else's is gone")
	}
}
