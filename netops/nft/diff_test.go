package nft

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestPlans compares the transaction for each kind of change with a golden file, and validates it with nft.
func TestPlans(t *testing.T) {
	tests := []struct {
		name       string
		have, want Table
	}{
		{"nothing", small(), small()},
		{"create", Table{}, small()},
		{"remove", small(), Table{}},
		{"wake", changed(func(t *Table) { t.Dormant = true }), small()},
		{"elements", changed(func(t *Table) {
			t.Sets[0] = NewSet("nodes", parsed.Prefixes("10.0.0.0/23", "192.168.1.1/32")...)
		}), small()},
		{"rule", changed(func(t *Table) { t.Chains[1].Rules[0] = Rule{Drop()} }), small()},
		{"policy", changed(func(t *Table) { t.Chains[1].Hook.Drop = true }), small()},
		{"priority", changed(func(t *Table) { t.Chains[1].Hook.Priority++ }), small()},
		{"unhook", changed(func(t *Table) { t.Chains[1].Hook = nil }), small()},
		{"foreign-set", changed(func(t *Table) { t.Sets[0].Foreign = "flags 0" }), small()},
		{"foreign-chain", changed(func(t *Table) {
			t.Sets = append(t.Sets, Set{Name: "more"})
			t.Chains = append(t.Chains, Chain{Name: "more", Rules: []Rule{{SAddrIn("more")}}})
		}), small()},
		{"less", small(), Table{Name: "small", Chains: small().Chains[:1]}},
	}
	n := newNamespace(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n := n.in(t)
			text := Diff(test.have, test.want).String()
			golden.Check(t, "plan-"+test.name+".golden", text)
			have := test.have
			for i, s := range have.Sets { // the text of a set does not contain its foreign properties
				have.Sets[i] = Set{Name: s.Name, Elements: s.Elements}
			}
			n.nft("flush ruleset\n" + have.String())
			n.Feed(text, "nft", "--check", "-f", "-")
		})
	}
}

// changed returns the small table with a change.
func changed(change func(*Table)) Table {
	t := small()
	change(&t)
	return t
}

// TestDiffOfEqual: the order of chains and sets does not matter.
func TestDiffOfEqual(t *testing.T) {
	for _, table := range []Table{{}, small(), everything()} {
		other := Table{Name: table.Name, Sets: slices.Clone(table.Sets), Chains: slices.Clone(table.Chains)}
		slices.Reverse(other.Sets)
		slices.Reverse(other.Chains)
		if plan := Diff(table, other); !plan.Empty() {
			t.Errorf("plan for equal tables: %s", plan)
		}
	}
}

// TestRuleEqual: cmp.Equal compares rules by their effect, with Equal.
func TestRuleEqual(t *testing.T) {
	a := Rule{SAddr(netip.MustParsePrefix("10.1.2.3/8")), Protocol(UDP), UDPDPort(1), Drop()}
	b := Rule{SAddr(netip.MustParsePrefix("10.0.0.0/8")), UDPDPort(1), Drop()}
	if !cmp.Equal(a, b) {
		t.Errorf("%s and %s differ", a, b)
	}
	for _, c := range []Rule{{}, b[:2], {b[0], b[1], Accept()}, append(slices.Clone(b), Counter())} {
		if cmp.Equal(b, c) {
			t.Errorf("%s and %s are equal", b, c)
		}
	}
}

func TestNewSet(t *testing.T) {
	got := NewSet("s", parsed.Prefixes("10.2.0.9/16", "10.1.0.1/32", "10.0.0.0/15", "10.1.0.1/32", "9.0.0.1/32")...)
	want := Set{Name: "s", Elements: parsed.Prefixes("9.0.0.1/32", "10.0.0.0/15", "10.2.0.0/16")}
	if !slices.Equal(got.Elements, want.Elements) {
		t.Errorf("%v, want %v", got.Elements, want.Elements)
	}
}

// FuzzIntervals encodes prefixes to the kernel's elements and decodes them.
func FuzzIntervals(f *testing.F) {
	f.Add(uint64(1), uint(3))
	f.Add(uint64(2), uint(200))
	f.Fuzz(func(t *testing.T, seed uint64, count uint) {
		r := rand.New(rand.NewPCG(seed, 0))
		ps := make([]netip.Prefix, count%500)
		for i := range ps {
			ps[i] = netip.PrefixFrom(cidr.Address(r.Uint32()), r.IntN(33))
		}
		want := NewSet("s", ps...)
		require.NoError(t, want.validate())
		elements := want.encode(want.Elements)
		bounds := make([]bound, len(elements))
		for i, e := range elements {
			bounds[i] = bound{cidr.Number(netip.AddrFrom4([4]byte(e.Key))), e.IntervalEnd}
		}
		r.Shuffle(len(bounds), func(i, j int) { bounds[i], bounds[j] = bounds[j], bounds[i] })
		got, err := prefixes(bounds)
		if err != nil || !slices.Equal(got, want.Elements) {
			t.Errorf("%v (%v), want %v", got, err, want.Elements)
		}
	})
}

func TestOddIntervals(t *testing.T) {
	a := func(text string) uint32 { return cidr.Number(netip.MustParseAddr(text)) }
	tests := []struct {
		want   string
		bounds []bound
	}{
		{"10.0.0.1-10.0.0.4 is not a prefix", []bound{{a("10.0.0.1"), false}, {a("10.0.0.5"), true}}},
		{"10.0.0.1-255.255.255.255 is not a prefix", []bound{{a("10.0.0.1"), false}}},
		{"interval end 10.0.0.1 without a start", []bound{{a("10.0.0.1"), true}}},
		{"interval start 10.0.0.1 without an end", []bound{{a("10.0.0.1"), false}, {a("10.0.0.2"), false}}},
	}
	for _, test := range tests {
		if _, err := prefixes(test.bounds); err == nil || err.Error() != test.want {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
	if got, err := prefixes([]bound{{0, true}}); err != nil || got != nil {
		t.Errorf("%v, %v for a leading gap alone", got, err)
	}
}
