package kernel

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops"
)

// TestStolenGateway: a gateway reports the address of a pod as its own, and an endpoint in the peer's pod CIDR. Of the
// pod's packets to the peer only datagrams to that endpoint leave outside the tunnel.
func TestStolenGateway(t *testing.T) {
	t.Parallel()
	eachOverlay(t, func(t *testing.T, kind netops.LinkKind) {
		a, b := nodesAmongPods(t, kind)
		victim, endpoint := a.nodes[1], b.node(0)
		victim.config.Peers[0].Gateways[0].Pod, victim.config.Peers[0].Endpoints = a.pod(1), []netip.Addr{endpoint}
		victim.follow()
		for _, to := range []netip.Addr{b.pod(0), b.pod(1), b.node(1)} {
			if way := victim.IP(fmt.Sprintf("route get %s from %s iif cni0", to, a.pod(1))); !strings.Contains(way, " dev "+netops.NodeLink(7)) {
				t.Errorf("from the pod to %s: %s", to, way)
			}
		}
		if way := victim.IP(fmt.Sprintf("route get %s from %s iif cni0", endpoint, a.pod(1))); !strings.Contains(way, " dev eth0") {
			t.Errorf("from the gateway, as it says, to its endpoint: %s", way)
		}
		before := victim.drops("past-overlay")
		ctx, cancel := context.WithTimeout(t.Context(), silence)
		defer cancel()
		if c, err := victim.pod.Dial(ctx, "tcp4", at(endpoint)); err == nil {
			_ = c.Close()
			t.Error("a TCP connection is taken for the tunnel")
		}
		wait.Until(t, "a drop of the guard", answerWait, func() bool { return victim.drops("past-overlay") > before })
	})
}

// TestGatewayReportsPod: A's gateway for C reports the address of a pod on another node as its own. The pod still
// exchanges packets with B.
func TestGatewayReportsPod(t *testing.T) {
	t.Parallel()
	eachOverlay(t, func(t *testing.T, kind netops.LinkKind) {
		a, b, c := threeSides(t)
		join(kind, b, a)
		join(kind, a, c)
		n := a.nodes[1]
		n.config.Peers[1].Gateways[0].Pod = a.pod(1)
		n.follow()
		expect(t, b.nodes[0].pod, at(a.seenPod(1)), "a1", b.seenPod(0))
		expect(t, n.pod, at(b.seenPod(0)), "b0", a.seenPod(1))
		if drops := n.drops("to-pods"); drops > 0 {
			t.Errorf("%d packets to the pod dropped", drops)
		}
	})
}

// TestEndpointOfAnotherPeering: a gateway of another peering sends a datagram to the endpoint of B, which is in a range
// of B, while the routing rule is missing: it does not leave outside the tunnel. The same datagram of the gateway for B
// does.
func TestEndpointOfAnotherPeering(t *testing.T) {
	t.Parallel()
	eachOverlay(t, func(t *testing.T, kind netops.LinkKind) {
		a, b := nodesAmongPods(t, kind)
		n, endpoint := a.nodes[1], b.node(0)
		n.config.Peers = append(slices.Clone(n.config.Peers), netops.NodePeer{
			Name: "c", CIDRs: parsed.Prefixes("10.13.0.0/16"), MTU: 1300,
			Gateways: []netops.NodeGateway{{Internal: numbered(internalCIDR, 0x8009), Pod: a.pod(1), VNI: 9, Used: true}},
		})
		n.follow()
		n.IP(fmt.Sprintf("rule del priority %d", netops.PriorityNode))
		received := listenAll(t, b)
		send := func(payload string) {
			c, err := n.pod.Dial(t.Context(), "udp4", at(endpoint))
			if err == nil {
				_, err = c.Write([]byte(payload))
			}
			require.NoError(t, err)
			_ = c.Close()
		}
		before := n.drops("past-overlay")
		send(bad)
		wait.Until(t, "a drop of the guard, or the packet", answerWait, func() bool {
			return n.drops("past-overlay") > before || received.has(bad)
		})
		if received.has(bad) {
			t.Error("the gateway for C sent to the endpoint of B in the clear")
		}
		n.config.Peers[1].Gateways[0].Pod, n.config.Peers[0].Gateways[0].Pod = a.pod(0), a.pod(1)
		n.follow()
		send(good)
		wait.Until(t, "the packet of the gateway for B", answerWait, func() bool { return received.has(good) })
	})
}

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
