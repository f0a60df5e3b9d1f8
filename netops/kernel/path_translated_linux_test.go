package kernel

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"liqonet.io/liqonet/netops"
)

// TestTranslatedForPeer: rules on a node, as those of kube-proxy and CNIs, translate packets for a port of the node, or
// for a Service address, to one of its pods. A peer's packets are not translated by them.
func TestTranslatedForPeer(t *testing.T) {
	t.Parallel()
	const hostPort, redirected = 30081, 30082
	eachPair(t, func(t *testing.T, a, b side) {
		n, service := a.nodes[1], a.inPods(1, 77) // an external address of a Service, without a neighbour entry
		n.NFT(
			"table ip proxy {", "chain services {",
			fmt.Sprintf("fib daddr type local meta l4proto { tcp, udp } th dport %d mark set mark or 0x4000 dnat to %s", nodePort, at(a.pod(1))),
			fmt.Sprintf("fib daddr type local meta l4proto { tcp, udp } th dport %d dnat to %s", hostPort, at(a.pod(1))),
			fmt.Sprintf("meta l4proto { tcp, udp } th dport %d dnat to %s", redirected, at(a.internal(1))),
			fmt.Sprintf("ip daddr %s meta l4proto { tcp, udp } th dport %d dnat to %s", service, servicePort, at(a.pod(1))),
			"}",
			"chain pre { type nat hook prerouting priority -100", "jump services", "}",
			"chain post { type nat hook postrouting priority 100", "mark and 0x4000 != 0 masquerade", "}",
			"}",
		)
		serve(n.namespace, a.internal(1), "node a1")
		peers := map[string]namespace{"pod": b.nodes[1].pod, "node": b.nodes[1].namespace}
		for name, from := range peers {
			for what, c := range map[string]struct {
				to    netip.AddrPort
				chain string
			}{
				"NodePort":         {netip.AddrPortFrom(a.seenNode(1), nodePort), "to-node"},
				"hostPort":         {netip.AddrPortFrom(a.seenNode(1), hostPort), "to-node"},
				"redirected port":  {netip.AddrPortFrom(a.seenNode(1), redirected), "to-node"},
				"redirected, pod":  {netip.AddrPortFrom(a.seenPod(1), redirected), "into-node"},
				"external address": {at(a.seen(service)), "out-of-overlay"},
			} {
				t.Run(fmt.Sprintf("%s/%s", name, what), func(t *testing.T) {
					dropped(t, from, c.to, func() int { return n.drops(c.chain) })
				})
			}
		}
		expectAll(t, a, b)
		// Clients of the own cluster use them as before.
		expect(t, a.nodes[0].pod, netip.AddrPortFrom(a.node(1), nodePort), "a1", a.inPods(1, bridgeNumber))
		expect(t, a.nodes[0].pod, at(service), "a1", a.pod(0))
	})
}

// TestInternalAddress: neighbours of a node send to its overlay address, at which echoes of gateways and peers are
// answered at a limited rate.
func TestInternalAddress(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, a, b side) {
		n := a.nodes[1]
		serve(n.namespace, a.internal(1), "node a1")
		a.router.IP(fmt.Sprintf("route add %s via %s", a.internal(1), a.node(1)))
		for name, from := range map[string]namespace{"pod": n.pod, "host of the nodes' network": a.router} {
			t.Run(name, func(t *testing.T) {
				dropped(t, from, at(a.internal(1)), func() int { return n.drops("input") })
			})
		}
		expect(t, n.namespace, at(a.internal(1)), "node a1", a.internal(1))
		expectAll(t, a, b)
	})
}

// TestForeignRouter: hosts that are no pods of a node use it as a router to the peer.
func TestForeignRouter(t *testing.T) {
	t.Parallel()
	for _, kind := range overlays() {
		a, b := equalRanges().build(t, func(a, _ *side) { a.masquerades = false })
		join(kind, a, b)
		outside, n := a.outside(), a.nodes[1]
		// A host of the nodes' network, one behind a router, a pod of another node, and the other node itself.
		a.router.IP(fmt.Sprintf("route add 10.12.0.0/16 via %s", a.node(1)))
		a.nodes[0].IP("rule add priority 90 to 10.12.0.0/16 table 9")
		a.nodes[0].IP(fmt.Sprintf("route add 10.12.0.0/16 via %s table 9", a.node(1)))
		a.nodes[0].Run("nft", "delete", "table", "ip", netops.Table) // its guard would drop them
		for name, from := range map[string]namespace{
			"host of the nodes' network": a.router, "host behind a router": outside,
			"pod of another node": a.nodes[0].pod, "another node": a.nodes[0].namespace,
		} {
			t.Run(fmt.Sprintf("%s/%s", kind, name), func(t *testing.T) {
				dropped(t, from, at(b.seenPod(1)), func() int { return n.drops("into-overlay") })
			})
		}
		expect(t, n.pod, at(b.seenPod(1)), "b1", a.seenPod(1))
		expect(t, n.namespace, at(b.seenPod(1)), "b1", a.seenNode(1))
	}
}

// TestMarksOfOuterPackets: nodes mark arriving overlay packets, as Cilium does with the identity of the gateway pod.
// Decapsulation keeps the mark, and it is removed from the peer's packets before it has an effect.
func TestMarksOfOuterPackets(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, a, b side) {
		nodes := slices.Concat(a.nodes[:], b.nodes[:])
		for _, n := range nodes {
			n.NFT(
				"table ip marks {",
				fmt.Sprintf("chain outer { type filter hook prerouting priority -400; udp dport %d meta mark set 0x12340f00; }", overlayPort),
				`chain inner { type filter hook prerouting priority -399; iifname "lqn-*" mark 0x12340f00 counter; }`,
				fmt.Sprintf("chain forward { type filter hook forward priority -400; udp dport %d return; mark 0x12340f00 counter; }", overlayPort),
				fmt.Sprintf("chain input { type filter hook input priority -400; udp dport %d return; mark 0x12340f00 counter; }", overlayPort), "}",
			)
		}
		expectAll(t, a, b)
		expectAll(t, b, a)
		survived := 0
		for _, n := range nodes {
			survived += n.counted("marks", "inner")
			for _, chain := range []string{"forward", "input"} {
				if marked := n.counted("marks", chain); marked > 0 {
					t.Errorf("%d packets of the peer have the gateway's mark, in chain %s", marked, chain)
				}
			}
		}
		if survived == 0 {
			t.Error("no mark survived decapsulation: nothing was tested")
		}
	})
}
