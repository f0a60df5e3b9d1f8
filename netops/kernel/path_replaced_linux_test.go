package kernel

import (
	"fmt"
	"net/netip"
	"testing"

	"liqonet.io/liqonet/internal/testbed/wait"
)

// TestAddressOfReplacedGateway: a node without connection to the API server keeps the address of a replaced gateway,
// and another pod gets that address. Packets that the pod sends to the node as the gateway would are dropped by the
// pod's own node, with and without masquerading by the network plugin.
func TestAddressOfReplacedGateway(t *testing.T) {
	t.Parallel()
	for _, masquerades := range []bool{true, false} {
		for _, kind := range overlays() {
			a, b := equalRanges().build(t, func(a, _ *side) { a.masquerades = masquerades })
			join(kind, a, b)
			cutOff, own, g := a.nodes[1], a.nodes[0], a.gateways[0]
			received := listenAll(t, a)
			send := func(to netip.Addr, payload string) {
				toOverlay(t, g.namespace, to, g.frame(a.internal(1), b.seenPod(1), a.pod(1), payload).bytes())
			}
			send(a.node(1), good)
			wait.Until(t, "the packet of the gateway", answerWait, func() bool { return received.has(good) })
			own.config.Peers[0].Gateways[0].Pod = a.inPods(0, 99) // address of its next pod
			own.follow()
			for name, to := range map[string]netip.Addr{"node": a.node(1), "node among pods": a.inPods(1, bridgeNumber)} {
				t.Run(fmt.Sprintf("%s/masquerades %v/%s", kind, masquerades, name), func(t *testing.T) {
					before := own.drops("untracked")
					send(to, bad)
					wait.Until(t, "a drop, or the packet", answerWait, func() bool {
						return own.drops("untracked") > before || cutOff.drops("outer") > 0 || received.has(bad)
					})
					if received.has(bad) || own.drops("untracked") == before {
						t.Errorf("arrived: %v; dropped by the pod's node: %d, by the other one: %d",
							received.has(bad), own.drops("untracked")-before, cutOff.drops("outer"))
					}
				})
			}
		}
	}
}
