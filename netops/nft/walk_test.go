package nft

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"liqonet.io/liqonet/internal/cidr"
)

// TestRandomWalk applies random tables one after the other, by netlink and by nft, and compares the results.
func TestRandomWalk(t *testing.T) {
	byNetlink, byText := newNamespace(t), newNamespace(t)
	c, text := byNetlink.open(), byText.open()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	var have Table
	for step := range 150 {
		want := randomTable(random)
		plan := Diff(byNetlink.observe(c, "walk"), want)
		if pure := Diff(have, want).String(); pure != plan.String() && have.Name != "" {
			t.Fatalf("seed %d step %d: plan from the kernel\n%sfrom the value\n%s", seed, step, plan, pure)
		}
		byNetlink.apply(c, Table{Name: "walk", Sets: want.Sets, Chains: want.Chains})
		byText.nft(plan.String())
		if again := Diff(byText.observe(text, "walk"), want); !again.Empty() {
			t.Fatalf("seed %d step %d: nft makes of\n%sa table that lacks\n%s", seed, step, plan, again)
		}
		have = want
	}
}

func randomTable(r *rand.Rand) Table {
	t := Table{Name: "walk"}
	for _, name := range []string{"a", "b"} {
		ps := make([]netip.Prefix, r.IntN(12))
		for i := range ps {
			ps[i] = netip.PrefixFrom(cidr.Address(uint32(r.IntN(64))<<26|uint32(r.IntN(4))<<20), min(4+r.IntN(40), 32))
		}
		t.Sets = append(t.Sets, NewSet(name, ps...))
	}
	for i := range t.Sets { // some of hosts, some of ranges
		if t.Sets[i].Hosts = r.IntN(3) == 0; t.Sets[i].Hosts {
			t.Sets[i].Elements = slices.DeleteFunc(t.Sets[i].Elements, func(p netip.Prefix) bool { return !p.IsSingleIP() })
		}
	}
	rules := []Rule{
		{SAddrIn("a"), Drop()},
		{DAddrIn("b"), Counter(), Return()},
		{ICMPType(0, 8), Jump("called")},
		{IIfGroup(19457), OIfGroupNot(19458), Counter()},
		{UDPDPort(6091), OverlayID(77), SetMark(3)},
		{UDPBegins("LQNE"), Counter()},
		{CTState(Established, Related), Accept()},
	}
	t.Chains = []Chain{{Name: "called", Rules: []Rule{{Counter()}}}}
	for _, name := range []string{"x", "y", "z"} {
		if r.IntN(4) == 0 {
			continue
		}
		points := hookPoints
		t.Chains = append(t.Chains, Chain{
			Name:  name,
			Hook:  &Hook{Type: "filter", Point: points[r.IntN(len(points))], Priority: r.IntN(3) * 50, Drop: r.IntN(2) == 0},
			Rules: slices.Clone(rules[:r.IntN(len(rules)+1)]),
		})
		r.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
	}
	return t
}
