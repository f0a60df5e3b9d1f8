package nft

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestEveryExpression compares the two forms of each expression: the rule written by netlink is observed unchanged, nft
// prints it as its text, and nft compiles its text to the same rule.
func TestEveryExpression(t *testing.T) {
	n, c := newConn(t)
	for _, chain := range everything().Chains {
		for i, rule := range chain.Rules {
			t.Run(fmt.Sprintf("%s/%d", chain.Name, i), func(t *testing.T) {
				n := n.in(t)
				want := Table{
					Name: "one", Sets: everything().Sets,
					Chains: []Chain{{Name: "called"}, {Name: chain.Name, Hook: chain.Hook, Rules: []Rule{rule}}},
				}
				if chain.Name == "called" {
					want.Chains = want.Chains[1:]
				}
				n.apply(c, want)
				assert.Equal(t, "nft prints another text", plain(want.String()), plain(n.list("one")))
				if chain.Name == quotedChain {
					return
				}
				n.nft("delete table ip one\n" + want.String())
				if plan := Diff(n.observe(c, "one"), want); !plan.Empty() {
					t.Errorf("nft makes something else of\n%s%s%s", want, n.observe(c, "one"), plan)
				}
			})
		}
	}
}

func TestWholeTable(t *testing.T) {
	n, c := newConn(t)
	want := everything()
	n.apply(c, want)
	assert.Equal(t, "nft prints another text", plain(want.String()), plain(n.list(want.Name)))
	n.apply(c, Table{Name: want.Name})
	plan := Diff(n.observe(c, want.Name), Table{})
	require.NoError(t, c.Apply(plan))
	if have := n.observe(c, want.Name); have.Name != "" {
		t.Errorf("still there after %q: %s", plan, have)
	}
	if text := n.Feed("", "nft", "list", "ruleset"); text != "" {
		t.Errorf("left behind: %s", text)
	}
}

// TestCountersStay: a change of elements changes no rule, and a change of one chain keeps the counters of the others.
func TestCountersStay(t *testing.T) {
	elements, chain := small(), small()
	elements.Sets[0] = NewSet("nodes", parsed.Prefixes("10.0.0.0/25", "10.0.1.0/24", "10.0.2.0/24", "240.0.0.0/4")...)
	chain.Chains[1].Rules, chain.Chains[1].Hook.Drop = chain.Chains[1].Rules[1:], true
	for name, want := range map[string]Table{"elements": elements, "chain": chain} {
		t.Run(name, func(t *testing.T) {
			n, c := newConn(t)
			n.nft(small().String() + "flush chain ip small called\nadd rule ip small called counter packets 5 bytes 500\n")
			plan := n.apply(c, want)
			wantPlan := `delete element ip small nodes { 10.0.0.0/24, 192.168.1.1 }
add element ip small nodes { 10.0.0.0/25, 10.0.2.0/24 }
`
			if d := cmp.Diff(wantPlan, plan.String()); name == "elements" && d != "" {
				t.Errorf("plan (-want +got):\n%s", d)
			}
			if text := n.list("small"); !strings.Contains(text, "packets 5 bytes 500") {
				t.Errorf("counter lost:\n%s", text)
			}
		})
	}
}

// TestLargeSet has more elements and rules than one netlink attribute, or a socket's default buffer, can hold.
func TestLargeSet(t *testing.T) {
	n, c := newConn(t)
	want := small()
	all := make([]netip.Prefix, 20_000)
	for i := range all {
		all[i] = netip.PrefixFrom(cidr.Address(10<<24|uint32(i)*2), 32)
	}
	want.Sets[0] = NewSet("nodes", all...)
	for i := range uint32(1000) {
		want.Chains[0].Rules = append(want.Chains[0].Rules, Rule{Mark(i), Counter(), Return()})
	}
	n.apply(c, want)
	want.Sets[0] = NewSet("nodes", all[5000:]...)
	if plan := n.apply(c, want); len(plan.ops) != 1 {
		t.Errorf("%d commands where one would do", len(plan.ops))
	}
	n.apply(c, small())
}

// TestRejectedPlan: a transaction that the kernel rejects changes nothing, and the connection can still be used.
func TestRejectedPlan(t *testing.T) {
	n, c := newConn(t)
	n.apply(c, small())
	stale := small()
	stale.Sets[0].Elements = append(parsed.Prefixes("1.2.3.4/32"), stale.Sets[0].Elements...)
	want := small()
	want.Chains = want.Chains[:2]
	plans := map[string]Plan{
		"missing element": Diff(stale, want),
		"existing table":  Diff(Table{}, want),
		"nat in a filter chain": Diff(small(), Table{Name: "small", Chains: []Chain{{
			Name: "guard", Hook: &Hook{Type: "filter", Point: "forward"}, Rules: []Rule{{Counter()}, {SNATKeep()}},
		}}}),
	}
	for name, plan := range plans {
		err := c.Apply(plan)
		if err == nil {
			t.Errorf("%s: no error from\n%s", name, plan)
			continue
		}
		t.Logf("%s: %v", name, err)
		if again := Diff(n.observe(c, "small"), small()); !again.Empty() {
			t.Errorf("%s: something changed: %s", name, again)
		}
	}
	n.apply(c, want)
}

// small returns a table with an object of each kind.
func small() Table {
	return Table{
		Name: "small",
		Sets: []Set{NewSet("nodes", parsed.Prefixes("10.0.0.0/24", "10.0.1.0/24", "192.168.1.1/32", "240.0.0.0/4")...)},
		Chains: []Chain{
			{Name: "called", Rules: []Rule{{Counter()}}},
			{
				Name: "guard", Hook: &Hook{Type: "filter", Point: "forward", Priority: 10},
				Rules: []Rule{
					{IIf("a"), Counter(), Accept()},
					{SAddrIn("nodes"), Jump("called")},
					{ICMPType(3, 11), Mark(7), Drop()},
					{OIfGroup(19457), Counter()},
				},
			},
			{
				Name: "source", Hook: &Hook{Type: "nat", Point: "postrouting", Priority: 80},
				Rules: []Rule{{SAddr(netip.MustParsePrefix("10.1.0.0/16")), SNAT(netip.MustParseAddr("10.2.0.1"))}},
			},
		},
	}
}
