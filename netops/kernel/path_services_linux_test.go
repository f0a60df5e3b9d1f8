package kernel

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
)

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
