package kernel

import (
	"fmt"
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
