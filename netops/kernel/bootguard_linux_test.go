package kernel_test

import (
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/netops/kernel"
)

// TestBootRanges checks which ranges a boot guard blocks, in tables of nft(8) with and without the documented set.
func TestBootRanges(t *testing.T) {
	for _, c := range []struct{ name, table, want, fault string }{
		{"none", "", "", ""},
		{"as documented", "table ip liqonet-boot { set peers { type ipv4_addr; flags interval; auto-merge; elements = { 10.71.0.0/16, 10.81.0.0/16 }; }; }",
			"10.71.0.0/16 10.81.0.0/16", ""},
		{"with rules", `table ip liqonet-boot { set peers { type ipv4_addr; flags interval; auto-merge; elements = { 10.71.0.0/16 }; }
			chain guard { type filter hook postrouting priority 75; oifname "lqn-*" accept; ip daddr @peers counter drop; }; }`, "10.71.0.0/16", ""},
		{"neighbours", "table ip liqonet-boot { set peers { type ipv4_addr; flags interval; auto-merge; elements = { 10.70.0.0/16, 10.71.0.0/16, 10.72.0.0/16 }; }; }",
			"10.70.0.0/15 10.72.0.0/16", ""},
		{"empty", "table ip liqonet-boot { set peers { type ipv4_addr; flags interval; }; }", "", ""},
		{"IPv6 only", "table ip6 liqonet-boot { }", "", ""},
		{"another set", "table ip liqonet-boot { set others { type ipv4_addr; flags interval; elements = { 10.71.0.0/16 }; }; }", "", "has no set"},
		{"no set", "table ip liqonet-boot { chain guard { type filter hook postrouting priority 75; ip daddr 10.71.0.0/16 drop; }; }", "", "has no set"},
		{"no ranges", "table ip liqonet-boot { set peers { type ipv4_addr; flags interval; elements = { 10.71.0.3-10.71.0.9 }; }; }",
			"10.71.0.3/32 10.71.0.4/30 10.71.0.8/31", ""},
		{"of services", "table ip liqonet-boot { set peers { type inet_service; elements = { 80 }; }; }", "", "type"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ns := netns.New(t)
			ns.Feed(c.table, "nft", "-f", "-")
			k, err := kernel.OpenAt(ns.FD())
			require.NoError(t, err)
			t.Cleanup(func() { _ = k.Close() })
			got, err := k.BootRanges()
			if !slices.Equal(got, parsed.Prefixes(strings.Fields(c.want)...)) || (err != nil) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%v, %v, want %q, error %q", got, err, c.want, c.fault)
			}
		})
	}
}
