package netops

import (
	"fmt"
	"net/netip"
	"testing"

	"liqonet.io/liqonet/internal/testbed/wait"
)

// TestAddressOfReplacedGateway has a node that is cut off from the API server keep the address of a gateway that was
// replaced, and another pod get that address. What the pod sends the node as the gateway would is dropped by the pod's
// own node, which knows better, whether the plugin would hide the pod behind the address of that node or not, as for
// the node's address among pods.
func TestAddressOfReplacedGateway(t *testing.T) {
	t.Parallel()
	for _, masquerades := range []bool{true, false} {
		for _, kind := range overlays() {
			a, b := equalRanges().build(t, func(a, _ *side) { a.masquerades = masquerades })
			join(kind, a, b)
			cutOff, own, g := a.nodes[1], a.nodes[0], a.gateways[0]
			heard := listenAll(t, a)
			f := frame{kind: kind, vni: g.config.VNI, end: a.internal(1), source: b.seenPod(1), target: a.pod(1)}
			send := func(to netip.Addr, payload string) {
				f.payload = payload
				toOverlay(t, g.namespace, to, f.bytes())
			}
			send(a.node(1), good)
			wait.Until(t, "the packet of the gateway", answerWait, func() bool { return heard.has(good) })
			own.config.Peers[0].Gateways[0].Pod = a.inPods(0, 99) // of its next pod
			own.follow()
			for name, to := range map[string]netip.Addr{"node": a.node(1), "node among pods": a.inPods(1, bridgeNumber)} {
				t.Run(fmt.Sprintf("%s/masquerades %v/%s", kind, masquerades, name), func(t *testing.T) {
					before := own.drops("untracked")
					send(to, bad)
					wait.Until(t, "a drop, or the packet", answerWait, func() bool {
						return own.drops("untracked") > before || cutOff.drops("outer") > 0 || heard.has(bad)
					})
					if heard.has(bad) || own.drops("untracked") == before {
						t.Errorf("arrived: %v; dropped by the pod's node: %d, by the other one: %d",
							heard.has(bad), own.drops("untracked")-before, cutOff.drops("outer"))
					}
				})
			}
		}
	}
}
