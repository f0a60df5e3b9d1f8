package nft

import (
	"testing"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestFamilies: two tables with the same name and different families are independent.
func TestFamilies(t *testing.T) {
	n, c := newConn(t)
	tables := map[Family]Table{IP: {Name: "both", Chains: []Chain{{Name: "four"}}}, IP6: {
		Family: IP6, Name: "both", Chains: []Chain{{
			Name: "six", Hook: &Hook{Type: "filter", Point: "input", Priority: -10},
			Rules: []Rule{{UDPDPort(6091), Counter(), Drop()}, {IIfPrefix("lqn-"), Counter(), Drop()}},
		}},
	}}
	change := func(have, want Table) {
		t.Helper()
		require.NoError(t, c.Apply(Diff(have, want)))
	}
	for family, want := range tables {
		change(Table{}, want)
		have, err := c.Observe(family, "both")
		require.NoError(t, err)
		if plan := Diff(have, want); !plan.Empty() {
			t.Errorf("family %s: after the plan there is one more:\n%s", family, plan)
		}
	}
	assert.Equal(t, "nft prints another text", plain(tables[IP6].String()), plain(n.Feed("", "nft", "-y", "list", "table", "ip6", "both")))
	if packets, err := c.Dropped(IP6, "both"); err != nil || len(packets) != 1 {
		t.Errorf("dropped of family ip6: %v, %v; want those of one chain", packets, err)
	}
	change(tables[IP6], Table{})
	if has, err := c.Has(IP6, "both"); has || err != nil {
		t.Errorf("table of family ip6 after its removal: %t, %v", has, err)
	}
	if has, err := c.Has(IP, "both"); !has || err != nil {
		t.Errorf("table of family ip after the removal of the other: %t, %v", has, err)
	}
}
