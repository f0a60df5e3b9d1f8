package kernel

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/testbed/topology"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/nft"
)

// add applies Additions. It fails if an object is removed, if a range is not guarded afterwards, or if a second plan is
// not empty.
func add(t *testing.T, k *Kernel, ranges ...netip.Prefix) netops.Plan {
	t.Helper()
	before := observe(t, k)
	p := netops.Additions(before, ranges)
	for _, s := range p.Steps {
		if _, table := s.Object.(netops.Firewall); s.Op != netops.Add && !table {
			t.Errorf("a step that adds nothing: %s", s)
		}
	}
	if err := k.Apply(p); err != nil {
		t.Fatalf("apply: %v\nplan:\n%s", err, p)
	}
	after := observe(t, k)
	for _, s := range netops.Diff(before, after).Steps {
		if f, table := s.Object.(netops.Firewall); table {
			for line := range strings.Lines(f.Plan.String()) {
				if strings.HasPrefix(line, "delete chain") || strings.HasPrefix(line, "delete set") || strings.HasPrefix(line, "flush") {
					t.Errorf("what was there is not any more: %s", line)
				}
			}
		} else if s.Op != netops.Add {
			t.Errorf("what was there is not any more: %s", s)
		}
	}
	was, is := guarded(before), guarded(after)
	for _, p := range slices.Concat(was, ranges) {
		if !cidr.Within(p, is) {
			t.Errorf("%s is not guarded by %s", p, is)
		}
	}
	if more := netops.Additions(after, ranges); !more.Empty() {
		t.Errorf("there is still to do:\n%s", more)
	}
	return p
}

// guarded returns the ranges in the set of a state's table.
func guarded(s netops.State) []netip.Prefix {
	i := slices.IndexFunc(s.Firewall.Sets, func(s nft.Set) bool { return s.Name == netops.SetPeers })
	if i < 0 {
		return nil
	}
	return s.Firewall.Sets[i].Elements
}

// TestAdditionsGuard: on a node that has just booted, the additions are the complete guard.
func TestAdditionsGuard(t *testing.T) {
	t.Parallel()
	if p := netops.Additions(netops.State{}, nil); !p.Empty() {
		t.Errorf("without ranges:\n%s", p)
	}
	k := newNamespace(t).kernel()
	add(t, k, heldBack...)
	if rest := netops.Diff(observe(t, k), netops.GuardState(heldBack)); !rest.Empty() {
		t.Errorf("to the guard there is still to do:\n%s", rest)
	}
	add(t, k, netip.MustParsePrefix("10.12.0.0/16"))
}

// TestAdditionsBesidePaths adds ranges to the state of an earlier process, in all relations to its ranges. The unicast
// routes remain, also if the table was deleted, and if a range is inside the destination of such a route.
func TestAdditionsBesidePaths(t *testing.T) {
	t.Parallel()
	served := topology.NodeOfTwoPeers().Peers[0].CIDRs[0]
	inner := netip.PrefixFrom(served.Addr(), served.Bits()+4)
	outer := netip.PrefixFrom(served.Addr(), served.Bits()-4).Masked()
	free := netip.MustParsePrefix("10.99.0.0/16")
	for _, test := range []struct {
		name, others string // shell commands of another program
		ranges       []netip.Prefix
		empty        bool // no additions
	}{
		{"what there is", "", topology.NodeOfTwoPeers().PeerCIDRs(), true},
		{"within what there is", "", []netip.Prefix{inner}, true},
		{"another one", "", []netip.Prefix{free}, false},
		{"around what there is", "", []netip.Prefix{outer}, false},
		{"all of these", "", []netip.Prefix{inner, free, served, outer}, false},
		{"no table", "nft delete table ip liqonet", []netip.Prefix{served, free}, false},
		{"an empty table", "nft delete table ip liqonet; nft add table ip liqonet", []netip.Prefix{served, free}, false},
		{"no guard", "nft flush chain ip liqonet guard", []netip.Prefix{served, free}, false},
		{"switched off", "nft add table ip liqonet '{ flags dormant; }'", []netip.Prefix{served, free}, false},
		{"no twins, no rule", "ip route del unreachable " + served.String() + " table 7600; ip rule del priority 104", []netip.Prefix{served}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ns, k := newKernel(t)
			want := withKind(netops.NodeState(topology.NodeOfTwoPeers()), netops.KindVXLAN)
			reach(t, k, want)
			ns.Run("sh", "-ec", test.others)
			p := add(t, k, test.ranges...)
			if p.Empty() != test.empty {
				t.Errorf("plan:\n%s", p)
			}
			for _, target := range []netip.Prefix{served, inner} {
				if to := ns.IP("route get " + target.Addr().Next().String()); !strings.Contains(to, netops.Prefix+"gw") {
					t.Errorf("to %s: %s", target, to)
				}
			}
			if chain := ns.Run("nft", "list", "chain", "ip", netops.Table, "guard"); !strings.Contains(chain, "accept") || !strings.Contains(chain, "@peers") {
				t.Errorf("guard of paths:\n%s", chain)
			}
			if table := ns.Run("nft", "list", "table", "ip", netops.Table); strings.Contains(table, "dormant") {
				t.Errorf("the table is switched off:\n%s", table)
			}
			reach(t, k, want) // a full pass completes it
		})
	}
}
