package kernel

import (
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/topology"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/nft"
)

// impossible is a state with a firewall that the kernel refuses: a chain that leads to itself.
func impossible(s netops.State) netops.State {
	s.Firewall.Chains = append(slices.Clone(s.Firewall.Chains),
		nft.Chain{Name: "loop", Rules: []nft.Rule{{nft.Goto("loop")}}},
		nft.Chain{Name: "begin", Hook: &nft.Hook{Type: "filter", Point: "output"}, Rules: []nft.Rule{{nft.Goto("loop")}}},
	)
	return s
}

// impossible6 is the same of IPv6.
func impossible6(s netops.State) netops.State {
	ipv4 := s.Firewall
	s.Firewall, s.Firewall6 = s.Firewall6, ipv4
	s = impossible(s)
	s.Firewall, s.Firewall6 = ipv4, s.Firewall
	return s
}

// TestFirewallFails: without rules for what arrives nothing is opened, whatever else of ours was there, and a later
// pass opens it all. What was open stays, and what is not wanted goes.
func TestFirewallFails(t *testing.T) {
	t.Parallel()
	node, one, less := topology.NodeOfTwoPeers(), topology.NodeOfTwoPeers(), topology.NodeOfTwoPeers()
	one.Peers, less.Peers = one.Peers[:1], slices.Clone(less.Peers)
	less.Peers[0].CIDRs = less.Peers[0].CIDRs[:1]
	first, second := netops.NodeLink(node.Peers[0].Gateways[0].VNI), netops.NodeLink(node.Peers[1].Gateways[0].VNI)
	nothing, both, gateway := netops.State{}, netops.NodeState(node), netops.GatewayState(topology.GatewayOfEqualClusters())
	for _, test := range []struct {
		name         string
		before       netops.State
		others       string // what they do to the firewall
		want, broken netops.State
		links        []string // after the firewall failed
		routes       int
	}{
		{"nothing", nothing, "", both, impossible(both), nil, 0},
		{"nothing, IPv6", nothing, "", both, impossible6(both), nil, 0},
		{"ranges alone", netops.GuardState(node.PeerCIDRs()), "", both, impossible(both), nil, 0},
		{"another peer", netops.NodeState(one), "", both, impossible(both), []string{first, second}, 7},
		{"another peer, flushed", netops.NodeState(one), "flush table ip liqonet", both, impossible(both), []string{first}, 3},
		{"another peer, switched off", netops.NodeState(one), "add table ip liqonet { flags dormant; }", both, impossible(both), []string{first}, 3},
		{"fewer ranges, flushed", netops.NodeState(less), "flush table ip liqonet", both, impossible(both), []string{first, second}, 6},
		{"a peer leaves, deleted", both, "delete table ip liqonet", netops.NodeState(one), impossible(netops.NodeState(one)), []string{first}, 3},
		{"gateway", nothing, "", gateway, impossible(gateway), nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ns, k := newKernel(t)
			reach(t, k, withKind(test.before, netops.KindVXLAN))
			ns.Feed(test.others+"\n", "nft", "-f", "-")
			for range 2 { // a later pass finds what this one left
				fails(t, k, withKind(test.broken, netops.KindVXLAN), test.links, test.routes)
			}
			have := observe(t, k)
			reach(t, k, withKind(test.want, netops.KindVXLAN).Reachable(have))
			assert.NoError(t, k.Cleanup())
		})
	}
}

// fails applies a state whose firewall fails, and compares which of our links are there afterwards, and how many
// routes lead to peers and gateways. Whatever is wanted is guarded.
func fails(t *testing.T, k *Kernel, want netops.State, links []string, routes int) {
	t.Helper()
	have := observe(t, k)
	if err := k.Apply(netops.Diff(have, want.Reachable(have))); err == nil || !strings.HasPrefix(err.Error(), "replace firewall") {
		t.Fatalf("error %v, want one of the firewall", err)
	}
	have = observe(t, k)
	var ours []string
	for _, l := range have.Links {
		if l.Ours() && !l.Down {
			ours = append(ours, l.Name)
		}
	}
	if !slices.Equal(ours, links) {
		t.Errorf("links %v, want %v", ours, links)
	}
	leading := 0
	for _, r := range have.Routes {
		if r.Leads() {
			leading++
		}
	}
	if leading != routes {
		t.Errorf("%d routes lead to peers, want %d: %v", leading, routes, have.Routes)
	}
	for _, r := range want.Routes {
		if r.Refuses() && !slices.Contains(have.Routes, r) {
			t.Errorf("no route that refuses %v", r.Dst)
		}
	}
}
