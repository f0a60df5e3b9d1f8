package nft

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// manualChange is a change of the table of small by another program, as commands of nft. H1, H2 … are the handles of
// the rules of chain guard.
type manualChange struct{ name, commands string }

// changedRules returns changes of rules.
func changedRules() []manualChange {
	return []manualChange{
		{"rule deleted", "delete rule ip small guard handle H1"},
		{"rule added", "add rule ip small guard accept"},
		{"rule inserted", "insert rule ip small guard drop"},
		{"rule in an empty place", "add rule ip small called accept"},
		{"value altered", `replace rule ip small guard handle H1 iifname "b" counter accept`},
		{"match negated", `replace rule ip small guard handle H1 iifname != "a" counter accept`},
		{"group altered", "replace rule ip small guard handle H4 oifgroup 19458 counter"},
		{"group negated", "replace rule ip small guard handle H4 oifgroup != 19457 counter"},
		{"group of the other way", "replace rule ip small guard handle H4 iifgroup 19457 counter"},
		{"verdict altered", `replace rule ip small guard handle H1 iifname "a" counter drop`},
		{"counter taken away", `replace rule ip small guard handle H1 iifname "a" accept`},
		{"jump altered", "replace rule ip small guard handle H2 ip saddr @nodes accept"},
		{"lookup inverted", "replace rule ip small guard handle H2 ip saddr != @nodes jump called"},
		{"anonymous set altered", "replace rule ip small guard handle H3 icmp type { 3, 12 } meta mark 7 drop"},
		{"comment added", `replace rule ip small guard handle H4 oifgroup 19457 counter comment "a rest"`},
		{"foreign expression added", `replace rule ip small guard handle H1 iifname "a" limit rate 1/second counter accept`},
		{"foreign verdict map", "replace rule ip small guard handle H2 ip saddr vmap { 10.0.0.1 : jump called }"},
		{"order", `delete rule ip small guard handle H2; add rule ip small guard ip saddr @nodes jump called`},
	}
}

// changedSets returns changes of sets and their elements.
func changedSets() []manualChange {
	return []manualChange{
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
			"set of senders in its place",
			"flush chain ip small guard; delete set ip small nodes; add set ip small nodes { type ipv4_addr; size 100; flags dynamic,timeout; timeout 1m; }; add rule ip small guard ip saddr @nodes jump called",
		},
		{
			"set of flows in its place",
			"flush chain ip small guard; delete set ip small nodes; add set ip small nodes { type ipv4_addr . inet_service; size 100; flags dynamic,timeout; timeout 1m; }",
		},
		{
			"set of hosts in its place",
			"flush chain ip small guard; delete set ip small nodes; add set ip small nodes { type ipv4_addr; }; add rule ip small guard ip saddr @nodes jump called",
		},
		{
			"set that counts in its place",
			"flush chain ip small guard; delete set ip small nodes; add set ip small nodes { type ipv4_addr; flags interval; counter; elements = { 10.0.0.0/24, 10.0.1.0/24, 192.168.1.1, 240.0.0.0/4 }; }; add rule ip small guard ip saddr @nodes jump called",
		},
	}
}

// changedChains returns changes of chains, of their NAT, and of the whole table.
func changedChains() []manualChange {
	return []manualChange{
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
}

// TestManualChanges: changes made with nft are detected and reverted.
func TestManualChanges(t *testing.T) {
	n, c := newConn(t)
	for _, test := range slices.Concat(changedRules(), changedSets(), changedChains()) {
		t.Run(test.name, func(t *testing.T) {
			n := n.in(t)
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

// withHandles replaces H1, H2 … by the kernel's handles of the rules of chain guard, and puts each command on a line.
func withHandles(n namespace, commands string) string {
	n.t.Helper()
	chain := n.Feed("", "nft", "-a", "list", "chain", "ip", "small", "guard")
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
