package kernel

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"liqonet.io/liqonet/internal/testbed/parsed"
)

// TestPods sends from every pod and node of two clusters to every pod and node of the other, for several relations of
// their pod CIDRs, and verifies the ICMP errors of all hops.
func TestPods(t *testing.T) {
	t.Parallel()
	layouts := map[string]layout{
		"equal": equalRanges(),
		"disjoint": {
			podsA: parsed.Prefixes("10.244.0.0/16"), podsB: parsed.Prefixes("10.245.0.0/16"),
			seenA: parsed.Prefixes("10.244.0.0/16"), seenB: parsed.Prefixes("10.245.0.0/16"),
		},
		"one inside the other": {
			podsA: parsed.Prefixes("10.244.0.0/16"), podsB: parsed.Prefixes("10.244.64.0/18"),
			seenA: parsed.Prefixes("10.11.0.0/16"), seenB: parsed.Prefixes("10.12.128.0/18"),
		},
		// The range of B's pods is in use in A, by Services or nodes, and not the other way round.
		"one side overlaps": {
			podsA: parsed.Prefixes("10.244.0.0/16"), podsB: parsed.Prefixes("10.96.0.0/16"),
			seenA: parsed.Prefixes("10.244.0.0/16"), seenB: parsed.Prefixes("10.12.0.0/16"),
		},
		"several on a side": {
			podsA: parsed.Prefixes("10.244.0.0/16", "10.250.0.0/20"), podsB: parsed.Prefixes("10.244.0.0/16"),
			seenA: parsed.Prefixes("10.11.0.0/16", "10.250.0.0/20"), seenB: parsed.Prefixes("10.12.0.0/16"),
		},
	}
	for _, kind := range overlays() {
		for name, l := range layouts {
			t.Run(fmt.Sprintf("%s/%s", kind, name), func(t *testing.T) {
				a, b := l.build(t, nil)
				join(kind, a, b)
				t.Run("a to b", func(t *testing.T) { expectAll(t, a, b) })
				t.Run("b to a", func(t *testing.T) { expectAll(t, b, a) })
				t.Run("errors", func(t *testing.T) {
					g := a.gateways[0]
					g.Chain("clear", "out", "filter hook postrouting priority 500", "oifname eth0 meta l4proto icmp counter")
					expectErrors(t, a, b)
					expectErrors(t, b, a)
					if n := g.counted("clear", "out"); n > 0 {
						t.Errorf("%d errors of a gateway left by its pod's link", n)
					}
				})
			})
		}
	}
}

// expectAll sends from all nodes and pods of a cluster to those of another.
func expectAll(t *testing.T, from, to side) {
	for i, n := range from.nodes {
		for j := range to.nodes {
			server, pod := fmt.Sprintf("%s%d", to.name, j), at(to.seenPod(j))
			expect(t, n.pod, pod, server, from.seenPod(i))
			expect(t, n.namespace, pod, server, from.seenNode(i))
			for _, source := range []namespace{n.pod, n.namespace} {
				source.Run("ping", "-q", "-c1", "-w20", to.seenPod(j).String())
				source.Run("ping", "-q", "-c1", "-w20", to.seenNode(j).String())
			}
		}
	}
}

// A Service of cluster A whose only endpoint is a pod of cluster B.
const (
	clusterIP = "10.96.0.10"
	nodePort  = 30080
)

// proxy creates the rules of kube-proxy for the Service, with its mark and masquerading of external traffic.
func (n *testNode) proxy(endpoint netip.AddrPort) {
	n.t.Helper()
	protocols := []string{"tcp", "udp"}
	rules := make([]string, 0, 3*len(protocols))
	for _, protocol := range protocols {
		rules = append(rules,
			fmt.Sprintf("ip daddr %s %s dport 80 dnat to %s", clusterIP, protocol, endpoint),
			fmt.Sprintf("ip daddr %s %s dport 80 mark set mark or 0x4000 dnat to %s", balancer, protocol, endpoint),
			fmt.Sprintf("fib daddr type local %s dport %d mark set mark or 0x4000 dnat to %s", protocol, nodePort, endpoint),
		)
	}
	n.NFT(slices.Concat([]string{"table ip kube-proxy {", "chain services {"}, rules, []string{
		"}",
		"chain pre { type nat hook prerouting priority -100", "jump services", "}",
		"chain out { type nat hook output priority -100", "jump services", "}",
		"chain post { type nat hook postrouting priority 100",
		"mark and 0x4000 == 0 return", "mark set mark xor 0x4000", "masquerade", "}",
		"}",
	})...)
}

// TestServices reaches a remote endpoint by the addresses of a Service, on the gateway's node and on the other node.
// Its source at the endpoint is the client pod, or the node that received the packet if the client is external: replies
// return to that node, which has the connection.
func TestServices(t *testing.T) {
	t.Parallel()
	for _, kind := range overlays() {
		for _, masquerades := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/masquerade %t", kind, masquerades), func(t *testing.T) {
				a, b := equalRanges().build(t, func(a, _ *side) { a.masquerades = masquerades })
				join(kind, a, b)
				client := a.outside()
				for i, n := range a.nodes {
					n.proxy(at(b.seenPod(1)))
					service, port := netip.MustParseAddrPort(clusterIP+":80"), netip.AddrPortFrom(a.node(i), nodePort)
					expect(t, n.pod, service, "b1", a.seenPod(i))
					expect(t, n.namespace, service, "b1", a.seenNode(i))
					expect(t, n.pod, port, "b1", a.seenPod(i))
					expect(t, a.nodes[1-i].pod, port, "b1", a.seenNode(i))
					expect(t, a.nodes[1-i].namespace, port, "b1", a.seenNode(i))
					expect(t, client, port, "b1", a.seenNode(i))

					a.router.IP(fmt.Sprintf("route replace %s via %s", balancer, a.node(i)))
					expect(t, client, netip.AddrPortFrom(balancer, 80), "b1", a.seenNode(i))
				}
			})
		}
	}
}
