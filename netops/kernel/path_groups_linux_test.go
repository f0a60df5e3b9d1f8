package kernel

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/topology"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops"
)

// TestGatewaysShareFlows counts the flows of many address pairs in three gateways with one tunnel each, and in two
// gateways with two tunnels each.
//
// The kernel's secret for multipath hashing is the same in all namespaces. Gateways select tunnels by other addresses
// than nodes select gateways, because of translation; otherwise each gateway would use only one tunnel. Real nodes are
// separate machines.
func TestGatewaysShareFlows(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ atClient, atServer int }{{3, 1}, {2, 2}} {
		t.Run(fmt.Sprintf("%d gateways, %d tunnels each", test.atClient, test.atServer), func(t *testing.T) {
			a, b := equalRanges().build(t, nil)
			gateways, _ := joinAll(overlays()[0], a, b, test.atClient, test.atServer)
			expectAll(t, a, b)
			expectAll(t, b, a)
			const flows = 3000 // in the smallest share of four, 20 % are six times the standard deviation
			const burst = 250  // the queue of a network namespace's link has 1000 (net.core.netdev_max_backlog)
			for _, g := range gateways {
				g.countFlows()
			}
			for sent := burst; sent <= flows; sent += burst {
				a.nodes[1].pod.flood(t, b.seenPods[0], sent-burst, sent)
				wait.Until(t, "the flows in the tunnels", answerWait, func() bool {
					total := 0
					for _, g := range gateways {
						for _, to := range g.config.Tunnels {
							total += g.flows(to.Link)
						}
					}
					return total >= sent*19/20 // a busy machine may drop some
				})
			}
			for i, g := range gateways {
				expectEven(t, fmt.Sprintf("gateway %d", i), g.flows(netops.Overlay), flows/test.atClient)
				for _, to := range g.config.Tunnels {
					expectEven(t, fmt.Sprintf("%s of gateway %d", to.Link, i), g.flows(to.Link), flows/test.atClient/test.atServer)
				}
			}
		})
	}
}

// countFlows counts packets to servicePort by overlay and tunnel link.
func (g *testGateway) countFlows() {
	lines := []string{"table ip flows {"}
	chain := func(link, hook, match string) {
		lines = append(lines, fmt.Sprintf("chain %s { type filter hook %s priority 200; %s %s udp dport %d counter; }", link, hook, match, link, servicePort))
	}
	chain(netops.Overlay, "prerouting", "iifname")
	for _, to := range g.config.Tunnels {
		chain(to.Link, "postrouting", "oifname")
	}
	g.NFT(append(lines, "}")...)
}

func (g *testGateway) flows(link string) int { return g.counted("flows", link) }

// expectEven verifies that a share is within 20 % of an even one.
func expectEven(t *testing.T, what string, got, want int) {
	t.Helper()
	t.Logf("%s: %d flows of %d", what, got, want)
	if 5*got < 4*want || 5*got > 6*want {
		t.Errorf("%s: %d flows, want %d, 20 %% more or less", what, got, want)
	}
}

// flood sends a packet to the addresses of a range from index first to end.
func (ns namespace) flood(t *testing.T, p netip.Prefix, first, end int) {
	t.Helper()
	c := ns.For(t).ListenUDP(":0")
	defer func() { _ = c.Close() }()
	for i := first; i < end; i++ {
		_, err := c.WriteTo([]byte("?"), net.UDPAddrFromAddrPort(at(numbered(p, 0x4000+i))))
		require.NoError(t, err)
	}
}

// TestGroupChangesUnderTraffic removes gateways and tunnels from their groups and adds them again while flows to many
// addresses are active: every request gets its answer.
func TestGroupChangesUnderTraffic(t *testing.T) {
	t.Parallel()
	eachOverlay(t, func(t *testing.T, kind netops.LinkKind) {
		a, b := equalRanges().build(t, nil)
		near, _ := joinAll(kind, a, b, 2, 2)
		active := startTraffic(t, a, b)
		n := a.nodes[1]
		members := n.config.Peers[0].Gateways
		for i := range 20 {
			for j := range members {
				members[j].Used = i%3 == 2 || i%3 == j
			}
			if p := reach(t, n.kernel, netops.NodeState(n.config)); len(p.Steps) > 1 || len(p.Steps) == 1 && p.Steps[0].Kind() != "nexthop-group" {
				t.Errorf("a change of members is more than a change of the group:\n%s", p)
			}
			for _, g := range near {
				for j := range g.config.Tunnels {
					g.config.Tunnels[j].Used = i%3 == 0 || i%3 != j+1
				}
				g.follow()
			}
			active.more(t)
		}
	})
}

// TestGroupChangeIsFast measures the time that the kernel takes to change a group.
func TestGroupChangeIsFast(t *testing.T) {
	t.Parallel()
	k, c := newNamespace(t).kernel(), topology.NodeOfThreeGateways()
	c.Peers[0].CIDRs = nil
	for i := range 256 {
		c.Peers[0].CIDRs = append(c.Peers[0].CIDRs, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 11, byte(i), 0}), 24))
	}
	with := withKind(netops.NodeState(c), overlays()[0])
	reach(t, k, with)
	c.Peers[0].Gateways[1].Used = false
	without := withKind(netops.NodeState(c), overlays()[0])
	var times []time.Duration
	for range 50 {
		for _, p := range []netops.Plan{netops.Diff(with, without), netops.Diff(without, with)} {
			start := time.Now()
			require.NoError(t, k.Apply(p))
			times = append(times, time.Since(start))
		}
	}
	slices.Sort(times)
	t.Logf("a member of a group of 256 routes, out or in: median %s, worst %s", times[len(times)/2], times[len(times)-1])
	if median := times[len(times)/2]; median > 250*time.Millisecond {
		t.Errorf("median %s, want less than 5 ms on a machine at rest", median)
	}
}

// traffic is a number of flows between two clusters with continuous requests.
type traffic struct {
	mu      sync.Mutex
	answers []int // number of answers, by flow
}

// startTraffic sends requests from a pod and a node of one cluster to several addresses of a pod of another, until the
// test ends.
func startTraffic(t *testing.T, from, to side) *traffic {
	t.Helper()
	const addresses = 8
	c := &traffic{answers: make([]int, 2*addresses)}
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	var all sync.WaitGroup
	for i := range addresses {
		pod := to.inPods(1, 100+i)
		to.nodes[1].pod.IP(fmt.Sprintf("addr add %s/32 dev eth0", pod))
		serve(to.nodes[1].pod, pod, "b1")
	}
	t.Cleanup(func() { end(); all.Wait() })
	for i := range addresses {
		pod := to.inPods(1, 100+i)
		for j, source := range []namespace{from.nodes[1].pod, from.nodes[1].namespace} {
			conn, err := source.Dial(t.Context(), "udp4", at(to.seen(pod)))
			require.NoError(t, err)
			all.Go(func() {
				defer func() { _ = conn.Close() }()
				for ctx.Err() == nil {
					if _, err := question(conn, "?", answerWait); err != nil {
						t.Errorf("a request to %s: %v", pod, err)
						return
					}
					c.mu.Lock()
					c.answers[2*i+j]++
					c.mu.Unlock()
				}
			})
		}
	}
	return c
}

// more waits until each flow has some more answers.
func (c *traffic) more(t *testing.T) {
	t.Helper()
	now := func() []int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return slices.Clone(c.answers)
	}
	before := now()
	wait.Until(t, "more answers on every flow", answerWait, func() bool {
		for i, n := range now() {
			if n < before[i]+3 {
				return false
			}
		}
		return true
	})
}

// TestAsymmetricGateways: one cluster sends by its first gateway only and the other by its second only, with strict
// reverse path filters. Packets from an unused gateway are accepted from the peer as well.
func TestAsymmetricGateways(t *testing.T) {
	t.Parallel()
	settings := []string{"1", "2"} // gateway links drop with 1, node links with either
	if testing.Short() {
		settings = settings[:1]
	}
	for _, kind := range overlays() {
		for _, strictness := range settings {
			t.Run(fmt.Sprintf("%s/rp_filter %s", kind, strictness), func(t *testing.T) {
				a, b := equalRanges().build(t, nil)
				ofA, ofB := joinAll(kind, a, b, 2, 2)
				for i, c := range []side{a, b} {
					for _, n := range c.nodes {
						n.Run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter="+strictness)
						n.config.Peers[0].Gateways[1-i].Used = false
						n.follow()
						for _, hook := range []string{"forward", "input"} {
							n.Chain("marked", hook, "filter hook "+hook+" priority 0", "mark != 0 counter")
						}
					}
				}
				for i, gateways := range [][]*testGateway{ofA, ofB} {
					// Packets of A go from first to first, those of B from second to second.
					for _, g := range gateways {
						g.Run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter="+strictness)
						g.config.Tunnels[1-i].Used = false
						g.follow()
					}
				}
				expectAll(t, a, b)
				expectAll(t, b, a)
				for _, n := range slices.Concat(a.nodes[:], b.nodes[:]) {
					for _, chain := range []string{"forward", "input"} {
						if marked := n.counted("marked", chain); marked > 0 {
							t.Errorf("%d packets have a mark after they were routed, in chain %s", marked, chain)
						}
					}
				}
			})
		}
	}
}

// TestReflectedMarks: nodes reply with the mark of the packet that they reply to. If peers have several gateways, their
// ICMP errors are sent by the routes of the reverse path filter, and still reach the peer.
func TestReflectedMarks(t *testing.T) {
	t.Parallel()
	a, b := equalRanges().build(t, nil)
	joinAll(overlays()[0], a, b, 2, 2)
	for _, n := range slices.Concat(a.nodes[:], b.nodes[:]) {
		n.Run("sysctl", "-qw", "net.ipv4.fwmark_reflect=1", "net.ipv4.tcp_fwmark_accept=1")
	}
	expectAll(t, a, b)
	expectErrors(t, a, b)
}

// TestForeignChangesOfGroups deletes nexthops and groups, and sets weights: the kernel removes a nexthop from its
// groups, other members carry the packets, without members packets are rejected, and a pass restores the objects.
func TestForeignChangesOfGroups(t *testing.T) {
	t.Parallel()
	eachOverlay(t, func(t *testing.T, kind netops.LinkKind) {
		a, b := equalRanges().build(t, nil)
		gateways, _ := joinAll(kind, a, b, 2, 2)
		n, g := a.nodes[1], gateways[0]
		delete := func(ns namespace, ids ...uint32) {
			for _, id := range ids {
				ns.IP(fmt.Sprintf("nexthop del id %d", id))
			}
		}
		const first, second, tunnel0, tunnel1, group = 0x4c008001, 0x4c008002, 0x4d7e1202, 0x4d7e1206, 0x4e008001
		steps := func(p netops.Plan) string {
			var kinds []string
			for _, s := range p.Steps {
				kinds = append(kinds, string(s.Op)+s.Kind())
			}
			return strings.Join(slices.Compact(kinds), " ")
		}
		restore := func(k *Kernel, want netops.State, by string) {
			t.Helper()
			if got := steps(reach(t, k, want)); got != by {
				t.Errorf("restored by %q, want %q", got, by)
			}
			expectAll(t, a, b)
		}
		delete(n.namespace, second)
		if shown := n.IP("route get " + b.seenPod(1).String()); !strings.Contains(shown, " dev "+netops.NodeLink(7)) {
			t.Errorf("without the second gateway: %s", shown)
		}
		restore(n.kernel, netops.NodeState(n.config), "+nexthop ~nexthop-group +route")
		delete(n.namespace, first, second)
		if shown := n.IP("route show table 7600 match " + b.seenPod(1).String()); strings.Contains(shown, "nhid") || !strings.Contains(shown, "unreachable") {
			t.Errorf("without any gateway: %s", shown)
		}
		restore(n.kernel, netops.NodeState(n.config), "+nexthop +nexthop-group +route")
		delete(n.namespace, group)
		restore(n.kernel, netops.NodeState(n.config), "+nexthop-group +route")
		n.IP(fmt.Sprintf("nexthop replace id %d group %d,5/%d,1", group, first, second))
		restore(n.kernel, netops.NodeState(n.config), "~nexthop-group")

		delete(g.namespace, tunnel1)
		expectAll(t, a, b)
		restore(g.kernel, netops.GatewayState(g.config), "+nexthop ~nexthop-group")
		delete(g.namespace, tunnel0, tunnel1)
		restore(g.kernel, netops.GatewayState(g.config), "+nexthop +nexthop-group +route")
		for _, k := range []*Kernel{n.kernel, g.kernel} {
			reach(t, k, netops.State{})
		}
		for _, ns := range []namespace{n.namespace, g.namespace} {
			if left := ns.IP("nexthop"); left != "" {
				t.Errorf("left behind: %s", left)
			}
		}
	})
}

// TestOtherGatewayOfSamePeer: a gateway sends packets of other gateways to a node: with the address of a pod of another
// peer, and of another gateway of its own peer. Packets of its own peer are accepted, also while the node does not use
// it.
func TestOtherGatewayOfSamePeer(t *testing.T) {
	t.Parallel()
	eachOverlay(t, func(t *testing.T, kind netops.LinkKind) {
		a, b, c := threeSides(t)
		toB, _ := joinAll(kind, a, b, 2, 1)
		toC, _ := joinAll(kind, a, c, 2, 1)
		n := a.nodes[1]
		// A strict reverse path filter would drop these packets as well; here the rules must.
		n.Run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0")
		n.config.Peers[0].Gateways[1].Used = false
		n.follow()
		received, by := listenAll(t, a), toB[1]
		for name, source := range map[string]netip.Addr{
			"as another peer's pod":            c.seenPod(1),
			"as the other gateway":             toB[0].config.Internal,
			"as another peer's gateway":        toC[1].config.Internal,
			"as a node of this cluster":        a.internal(0),
			"as a pod of this cluster's nodes": a.pod(0),
		} {
			t.Run(name, func(t *testing.T) {
				send := func(source netip.Addr, payload string) func() {
					packet := by.frame(a.internal(1), source, a.pod(1), payload).bytes()
					return func() { toOverlay(t, by.namespace, a.node(1), packet) }
				}
				received.expectDrop(t, n.namespace, "from-b", send(source, bad), send(b.seenPod(1), good))
			})
		}
		t.Run("as the other gateway's tunnel", func(t *testing.T) { testOtherTunnel(t, toB[0], b.gateways[0]) })
	})
}

// testOtherTunnel sends by one tunnel with the address of the remote end of another one.
func testOtherTunnel(t *testing.T, from, to *testGateway) {
	other := to.config.Tunnels[1]
	// WireGuard would drop it as well.
	for g, address := range map[*testGateway]netip.Addr{from: other.Address.Addr(), to: other.Peer} {
		g.allow(append(slices.Clone(g.tunnels[0].config.AllowedIPs), cidr.Single(address)))
	}
	to.Run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0")
	before := to.drops("from-tunnel")
	// repeated, because a packet is lost while the tunnel is renewed.
	wait.Until(t, "a drop in chain from-tunnel", answerWait, func() bool {
		from.inject(t, datagram(other.Peer, other.Address.Addr(), bad))
		return to.drops("from-tunnel") > before
	})
}
