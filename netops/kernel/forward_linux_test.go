package kernel

import (
	"strings"
	"testing"

	"liqonet.io/liqonet/netops"
)

// dropping returns a namespace in which other programs drop forwarded packets: iptables as configured by Docker and
// ufw, and an nftables table.
func dropping(t *testing.T) namespace {
	t.Helper()
	ns := newNamespace(t)
	ns.Run("iptables-nft", "-P", "FORWARD", "DROP")
	ns.Run("iptables-nft", "-A", "FORWARD", "-i", "docker0", "-m", "comment", "--comment", "of another", "-j", "ACCEPT")
	ns.NFT(
		"table inet strict {", "chain guards { type filter hook forward priority 10; policy drop; }", "}",
		"table inet kind {", "chain guards { type filter hook forward priority 0; policy accept; }", "}",
	)
	return ns
}

func TestPassForward(t *testing.T) {
	t.Parallel()
	ns := dropping(t)
	k := ns.kernel()
	before := ns.Run("nft", "list ruleset")
	plan := reach(t, k, netops.State{PassForward: true})
	want := `+ pass from lqn-* in chain ip filter FORWARD
+ pass to lqn-* in chain ip filter FORWARD
+ pass from lqn-* in chain inet strict guards
+ pass to lqn-* in chain inet strict guards
`
	if plan.String() != want {
		t.Errorf("plan:\n%swant:\n%s", plan, want)
	}
	// iptables must be able to parse our rules in its table; otherwise kube-proxy and CNIs could not use it any more.
	shown := ns.Run("iptables-nft", "-S", "FORWARD")
	wantRules := `-P FORWARD DROP
-A FORWARD -o lqn-+ -m comment --comment "liqonet: to lqn-*" -j ACCEPT
-A FORWARD -i lqn-+ -m comment --comment "liqonet: from lqn-*" -j ACCEPT
-A FORWARD -i docker0 -m comment --comment "of another" -j ACCEPT
`
	if shown != wantRules {
		t.Errorf("iptables shows:\n%swant:\n%s", shown, wantRules)
	}
	if saved := ns.Run("iptables-nft-save"); strings.Contains(saved, "incompatible") {
		t.Error(saved)
	}
	reach(t, k, netops.State{})
	if after := ns.Run("nft", "list ruleset"); after != before {
		t.Errorf("after removal:\n%s\nbefore:\n%s", after, before)
	}
}

// TestPassForwardRestored flushes, duplicates and removes the rules.
func TestPassForwardRestored(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][]string{
		"flushed": {"iptables-nft", "-F", "FORWARD"},
		"one gone": {"iptables-nft", "-D", "FORWARD", "-i", "lqn-+", "-m", "comment",
			"--comment", "liqonet: from lqn-*", "-j", "ACCEPT"},
		"doubled": {"iptables-nft", "-A", "FORWARD", "-i", "lqn-+", "-m", "comment",
			"--comment", "liqonet: from lqn-*", "-j", "ACCEPT"},
		"policy accept": {"iptables-nft", "-P", "FORWARD", "ACCEPT"},
	} {
		t.Run(name, func(t *testing.T) {
			ns := dropping(t)
			k := ns.kernel()
			reach(t, k, netops.State{PassForward: true})
			ns.Run(change[0], change[1:]...)
			reach(t, k, netops.State{PassForward: true})
			if rules := ns.Run("iptables-nft", "-S", "FORWARD"); strings.Count(rules, "liqonet: to") != 1 || !strings.Contains(rules, "liqonet: from") {
				t.Errorf("rules:\n%s", rules)
			}
			reach(t, k, netops.State{})
			if rules := ns.Run("nft", "list ruleset"); strings.Contains(rules, "liqonet") {
				t.Errorf("rules of ours are left:\n%s", rules)
			}
		})
	}
}

func TestForwardChains(t *testing.T) {
	t.Parallel()
	ns := dropping(t)
	have := observe(t, ns.kernel())
	drops := map[string]bool{}
	for _, c := range have.ForwardChains {
		drops[string(c.Family)+" "+c.Table+" "+c.Name] = c.Drop
	}
	want := map[string]bool{"ip filter FORWARD": true, "inet strict guards": true, "inet kind guards": false}
	for chain, drop := range want {
		if got, found := drops[chain]; !found || got != drop {
			t.Errorf("chain %s: found %v, drops %v", chain, found, got)
		}
	}
	if len(drops) != len(want) {
		t.Errorf("chains %v, want %v", drops, want)
	}
}

// TestForwardPolicy sets the policy of iptables' FORWARD chain on a node to drop. Pods of the node do not reach peers
// until rules accept the overlay's packets.
func TestForwardPolicy(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, a, b side) {
		n := a.nodes[1] // not the gateway's node: the cluster's own path to the gateway is not affected
		n.Run("iptables-nft", "-P", "FORWARD", "DROP")
		silent(t, n.pod, at(b.seenPod(1)))
		n.config.PassForward = true
		n.follow()
		expectAll(t, a, b)
		n.config.PassForward = false
		n.follow()
		silent(t, n.pod, at(b.seenPod(1)))
	})
}
