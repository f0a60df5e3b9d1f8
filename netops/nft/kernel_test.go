package nft

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEveryExpression compares, for each expression alone, its two forms with each other: what was written by
// netlink is read back as written, nft prints it as its text, and nft makes the same of its text.
func TestEveryExpression(t *testing.T) {
	n := newNamespace(t)
	c := n.open()
	for _, chain := range everything().Chains {
		for i, rule := range chain.Rules {
			t.Run(fmt.Sprintf("%s/%d", chain.Name, i), func(t *testing.T) {
				n := namespace{t, n.file}
				want := Table{
					Name: "one", Sets: everything().Sets,
					Chains: []Chain{{Name: "called"}, {Name: chain.Name, Hook: chain.Hook, Rules: []Rule{rule}}},
				}
				if chain.Name == "called" {
					want.Chains = want.Chains[1:]
				}
				n.apply(c, want)
				if d := cmp.Diff(plain(want.String()), plain(n.list("one"))); d != "" {
					t.Errorf("nft prints another text (-ours +nft):\n%s", d)
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
	n := newNamespace(t)
	c := n.open()
	want := everything()
	n.apply(c, want)
	if d := cmp.Diff(plain(want.String()), plain(n.list(want.Name))); d != "" {
		t.Errorf("nft prints another text (-ours +nft):\n%s", d)
	}
	n.apply(c, Table{Name: want.Name})
	plan := Diff(n.observe(c, want.Name), Table{})
	if err := c.Apply(plan); err != nil {
		t.Fatal(err)
	}
	if have := n.observe(c, want.Name); have.Name != "" {
		t.Errorf("still there after %q: %s", plan, have)
	}
	if text := n.run("", "nft", "list", "ruleset"); text != "" {
		t.Errorf("left behind: %s", text)
	}
}

// small is a table with one of everything that can be changed by hand.
func small() Table {
	return Table{
		Name: "small",
		Sets: []Set{NewSet("nodes", mustPrefixes("10.0.0.0/24", "10.0.1.0/24", "192.168.1.1/32", "240.0.0.0/4")...)},
		Chains: []Chain{
			{Name: "called", Rules: []Rule{{Counter()}}},
			{
				Name: "guard", Hook: &Hook{Type: "filter", Point: "forward", Priority: 10},
				Rules: []Rule{
					{IIf("a"), Counter(), Accept()},
					{SAddrIn("nodes"), Jump("called")},
					{ICMPType(3, 11), Mark(7), Drop()},
					{Counter(), Comment("the rest")},
				},
			},
			{
				Name: "source", Hook: &Hook{Type: "nat", Point: "postrouting", Priority: 80},
				Rules: []Rule{{SAddr(netip.MustParsePrefix("10.1.0.0/16")), SNATPrefix(netip.MustParsePrefix("10.2.0.0/16"))}},
			},
		},
	}
}

// TestManualChanges makes changes as someone with nft would, and sees each found and undone.
func TestManualChanges(t *testing.T) {
	n := newNamespace(t)
	c := n.open()
	tests := []struct{ name, commands string }{
		{"rule deleted", "delete rule ip small guard handle H1"},
		{"rule added", "add rule ip small guard accept"},
		{"rule inserted", "insert rule ip small guard drop"},
		{"rule in an empty place", "add rule ip small called accept"},
		{"value altered", `replace rule ip small guard handle H1 iifname "b" counter accept`},
		{"match negated", `replace rule ip small guard handle H1 iifname != "a" counter accept`},
		{"verdict altered", `replace rule ip small guard handle H1 iifname "a" counter drop`},
		{"counter taken away", `replace rule ip small guard handle H1 iifname "a" accept`},
		{"jump altered", "replace rule ip small guard handle H2 ip saddr @nodes accept"},
		{"lookup inverted", "replace rule ip small guard handle H2 ip saddr != @nodes jump called"},
		{"anonymous set altered", "replace rule ip small guard handle H3 icmp type { 3, 12 } meta mark 7 drop"},
		{"comment altered", `replace rule ip small guard handle H4 counter comment "a rest"`},
		{"comment taken away", "replace rule ip small guard handle H4 counter"},
		{"foreign expression added", `replace rule ip small guard handle H1 iifname "a" limit rate 1/second counter accept`},
		{"foreign verdict map", "replace rule ip small guard handle H2 ip saddr vmap { 10.0.0.1 : jump called }"},
		{"order", `delete rule ip small guard handle H2; add rule ip small guard ip saddr @nodes jump called`},
		{"element added", "add element ip small nodes { 10.9.0.0/16 }"},
		{"range added", "add element ip small nodes { 10.9.0.1-10.9.0.6 }"},
		{"element deleted", "delete element ip small nodes { 10.0.1.0/24 }"},
		{"last element deleted", "delete element ip small nodes { 240.0.0.0/4 }"},
		{"all elements deleted", "flush set ip small nodes"},
		{"elements joined", "delete element ip small nodes { 10.0.0.0/24, 10.0.1.0/24 }; add element ip small nodes { 10.0.0.0/23 }"},
		{"set added", "add set ip small more { type ipv4_addr; }"},
		{"set of another type added", "add set ip small ports { type inet_service; elements = { 1, 2 }; }"},
		{"map added and used", "add map ip small m { type ipv4_addr : verdict; }; add rule ip small guard ip saddr vmap @m"},
		{
			"set of other flags in its place",
			"flush chain ip small guard; delete set ip small nodes; add set ip small nodes { type ipv4_addr; flags interval, timeout; elements = { 10.0.0.0/24, 10.0.1.0/24, 192.168.1.1, 240.0.0.0/4 }; }; add rule ip small guard ip saddr @nodes jump called",
		},
		{
			"set that counts in its place",
			"flush chain ip small guard; delete set ip small nodes; add set ip small nodes { type ipv4_addr; flags interval; counter; elements = { 10.0.0.0/24, 10.0.1.0/24, 192.168.1.1, 240.0.0.0/4 }; }; add rule ip small guard ip saddr @nodes jump called",
		},
		{"policy", "add chain ip small guard { policy drop; }"},
		{"priority", "flush chain ip small source; delete chain ip small source; add chain ip small source { type nat hook postrouting priority 90; }; add rule ip small source ip saddr 10.1.0.0/16 snat prefix to 10.2.0.0/16"},
		{"hook", "delete chain ip small source; add chain ip small source { type nat hook input priority 80; }; add rule ip small source ip saddr 10.1.0.0/16 snat prefix to 10.2.0.0/16"},
		{"nat range altered", "flush chain ip small source; add rule ip small source ip saddr 10.1.0.0/16 snat prefix to 10.3.0.0/16"},
		{"nat without prefix", "flush chain ip small source; add rule ip small source ip saddr 10.1.0.0/16 snat to 10.2.0.0-10.2.255.255"},
		{"nat persistent", "flush chain ip small source; add rule ip small source ip saddr 10.1.0.0/16 snat to 10.2.0.0/16 persistent"},
		{"chain added", "add chain ip small more { type filter hook input priority 0; }"},
		{"chain added and called", "add chain ip small more; add rule ip small guard jump more"},
		{"chain deleted", "delete chain ip small source"},
		{"chain emptied", "flush chain ip small guard"},
		{"table emptied", "flush table ip small"},
		{"table dormant", "add table ip small { flags dormant; }"},
		{"table deleted", "delete table ip small"},
		{"table deleted and made anew", "delete table ip small; add table ip small"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n := namespace{t, n.file}
			n.apply(c, small())
			n.nft(withHandles(n, test.commands))
			have := n.observe(c, "small")
			plan := Diff(have, small())
			if plan.Empty() {
				t.Fatalf("not found in\n%s", have)
			}
			t.Logf("\n%s", plan)
			if err := c.Apply(plan); err != nil {
				t.Fatalf("%v\n%s", err, plan)
			}
			if again := Diff(n.observe(c, "small"), small()); !again.Empty() {
				t.Fatalf("not undone: %s", again)
			}
		})
	}
}

// withHandles puts for H1, H2 … the kernel's handles of the rules of chain guard, and a line for each command.
func withHandles(n namespace, commands string) string {
	n.t.Helper()
	chain := n.run("", "nft", "-a", "list", "chain", "ip", "small", "guard")
	i := 0
	for line := range strings.Lines(chain) {
		rule, handle, ok := strings.Cut(strings.TrimSpace(line), " # handle ")
		if ok && !strings.Contains(rule, "{") || strings.HasPrefix(rule, "icmp") {
			i++
			commands = strings.ReplaceAll(commands, fmt.Sprintf("H%d", i), strings.TrimSpace(handle))
		}
	}
	for _, verb := range []string{"add", "delete", "flush"} {
		commands = strings.ReplaceAll(commands, "; "+verb, "\n"+verb)
	}
	return commands + "\n"
}

// TestElementsKeepCounters sees that a change of elements touches no rule.
func TestElementsKeepCounters(t *testing.T) {
	n := newNamespace(t)
	c := n.open()
	n.nft(small().String())
	n.nft(strings.TrimSpace(`
flush chain ip small called
add rule ip small called counter packets 5 bytes 500
`) + "\n")
	want := small()
	want.Sets[0] = NewSet("nodes", mustPrefixes("10.0.0.0/25", "10.0.1.0/24", "10.0.2.0/24", "240.0.0.0/4")...)
	plan := n.apply(c, want)
	wantPlan := `delete element ip small nodes { 10.0.0.0/24, 192.168.1.1 }
add element ip small nodes { 10.0.0.0/25, 10.0.2.0/24 }
`
	if d := cmp.Diff(wantPlan, plan.String()); d != "" {
		t.Errorf("plan (-want +got):\n%s", d)
	}
	if text := n.list("small"); !strings.Contains(text, "packets 5 bytes 500") {
		t.Errorf("counter lost:\n%s", text)
	}
}

// TestChangedChainAlone sees that a change of one chain leaves the counters of the others.
func TestChangedChainAlone(t *testing.T) {
	n := newNamespace(t)
	c := n.open()
	n.nft(small().String() + "flush chain ip small called\nadd rule ip small called counter packets 5 bytes 500\n")
	want := small()
	want.Chains[1].Rules = want.Chains[1].Rules[1:]
	want.Chains[1].Hook.Drop = true
	n.apply(c, want)
	if text := n.list("small"); !strings.Contains(text, "packets 5 bytes 500") {
		t.Errorf("counter lost:\n%s", text)
	}
}

// TestLargeSet has more elements and rules than one netlink attribute, or a socket's usual buffer, can hold.
func TestLargeSet(t *testing.T) {
	n := newNamespace(t)
	c := n.open()
	want := small()
	all := make([]netip.Prefix, 20_000)
	for i := range all {
		all[i] = netip.PrefixFrom(address(10<<24|uint32(i)*2), 32)
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

// TestRandomWalk goes from table to random table, by netlink and by nft, and compares.
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
			ps[i] = netip.PrefixFrom(address(uint32(r.IntN(64))<<26|uint32(r.IntN(4))<<20), 4+r.IntN(29))
		}
		t.Sets = append(t.Sets, NewSet(name, ps...))
	}
	rules := []Rule{
		{SAddrIn("a"), Drop()},
		{DAddrIn("b"), Counter(), Return()},
		{ICMPType(0, 8), Jump("called")},
		{UDPDPort(6091), OverlayID(77), SetMark(3)},
		{UDPBegins("LQNE"), Counter()},
		{CTState(Established, Related), Accept(), Comment("answers")},
	}
	t.Chains = []Chain{{Name: "called", Rules: []Rule{{Counter()}}}}
	for _, name := range []string{"x", "y", "z"} {
		if r.IntN(4) == 0 {
			continue
		}
		points := hookPoints()
		t.Chains = append(t.Chains, Chain{
			Name:  name,
			Hook:  &Hook{Type: "filter", Point: points[r.IntN(len(points))], Priority: r.IntN(3) * 50, Drop: r.IntN(2) == 0},
			Rules: slices.Clone(rules[:r.IntN(len(rules)+1)]),
		})
		r.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
	}
	return t
}

// TestRejectedPlan sees that a transaction which the kernel rejects changes nothing, and that the connection
// goes on.
func TestRejectedPlan(t *testing.T) {
	n := newNamespace(t)
	c := n.open()
	n.apply(c, small())
	stale := small()
	stale.Sets[0].Elements = append(mustPrefixes("1.2.3.4/32"), stale.Sets[0].Elements...)
	want := small()
	want.Chains = want.Chains[:2]
	plans := map[string]Plan{
		"element that is not there": Diff(stale, want),
		"table that is there":       Diff(Table{}, want),
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

// TestOtherTables sees that what is not in the table is neither read nor touched.
func TestOtherTables(t *testing.T) {
	n := newNamespace(t)
	c := n.open()
	foreign := strings.ReplaceAll(small().String(), "table ip small", "table ip other") +
		strings.ReplaceAll(small().String(), "table ip small", "table inet small")
	n.nft(foreign)
	before := n.run("", "nft", "list", "ruleset")
	if have := n.observe(c, "small"); have.Name != "" {
		t.Errorf("read: %s", have)
	}
	n.apply(c, small())
	if err := c.Apply(Diff(small(), Table{})); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, n.run("", "nft", "list", "ruleset")); d != "" {
		t.Errorf("foreign tables (-before +after):\n%s", d)
	}
}

// TestObserveWhileChanging reads while another changes the table: what is read is always one of the states.
func TestObserveWhileChanging(t *testing.T) {
	n := newNamespace(t)
	writer, reader := n.open(), n.open()
	one, two := small(), small()
	two.Sets[0] = NewSet("nodes", mustPrefixes("10.0.0.0/8")...)
	two.Chains[1].Rules = two.Chains[1].Rules[1:]
	n.apply(writer, one)
	done := make(chan error, 1)
	go func() {
		for range 100 {
			for _, p := range []Plan{Diff(one, two), Diff(two, one)} {
				if err := writer.Apply(p); err != nil {
					done <- err
					return
				}
			}
		}
		done <- nil
	}()
	for reads := 0; ; reads++ {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			if reads == 0 {
				t.Error("no read came between")
			}
			return
		default:
		}
		have, err := reader.Observe("small")
		if err == nil && !Diff(have, one).Empty() && !Diff(have, two).Empty() {
			t.Fatalf("a mixture was read:\n%s", have)
		}
	}
}

// TestOpen connects to the calling thread's namespace, and not to what is no namespace.
func TestOpen(t *testing.T) {
	n := newNamespace(t)
	n.apply(n.open(), small())
	n.do(func() error {
		c, err := Open(-1)
		if err != nil {
			return err
		}
		have, err := c.Observe("small")
		if plan := Diff(have, small()); err == nil && !plan.Empty() {
			t.Errorf("another table seen: %s", plan)
		}
		return errors.Join(err, c.Close())
	})
	file, err := os.Open("kernel_test.go")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := Open(int(file.Fd())); err == nil {
		t.Error("connected to a file")
	}
}

// TestObserveAgain: what was read is used again until somebody changes something, and is the caller's own.
func TestObserveAgain(t *testing.T) {
	n := newNamespace(t)
	c := n.open()
	n.apply(c, small())
	first := n.observe(c, "small")
	first.Sets[0].Name, first.Chains[0].Name = "spoiled", "spoiled"
	slices.Reverse(first.Chains)
	read := c.last.generation
	if plan := Diff(n.observe(c, "small"), small()); !plan.Empty() || c.last.generation != read {
		t.Errorf("generation %d, then %d; still to do:\n%s", read, c.last.generation, plan)
	}
	n.nft("add table ip foreign")
	n.nft("flush chain ip small guard")
	if plan := Diff(n.observe(c, "small"), small()); plan.Empty() {
		t.Error("a chain that was flushed is observed as it was")
	}
	if other := n.observe(c, "foreign"); other.Name != "foreign" {
		t.Errorf("another table is observed as %q", other.Name)
	}
}
