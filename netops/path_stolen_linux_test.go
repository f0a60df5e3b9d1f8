package netops

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/eventually"
)

// TestStolenGateway has a gateway tell the nodes that it is where a pod of theirs is, and that it hears its peer among
// the peer's pods: nothing that the pod sends to the peer leaves in the clear, but datagrams to that one address.
func TestStolenGateway(t *testing.T) {
	t.Parallel()
	for _, kind := range overlays() {
		t.Run(string(kind), func(t *testing.T) {
			a, b := nodesAmongPods(t, kind)
			victim, endpoint := a.nodes[1], b.node(0)
			victim.config.Peers[0].Gateways[0].Pod, victim.config.Peers[0].Endpoints = a.pod(1), []netip.Addr{endpoint}
			victim.follow()
			for _, to := range []netip.Addr{b.pod(0), b.pod(1), b.node(1)} {
				if way := victim.IP(fmt.Sprintf("route get %s from %s iif cni0", to, a.pod(1))); !strings.Contains(way, " dev "+NodeLink(7)) {
					t.Errorf("from the pod to %s: %s", to, way)
				}
			}
			if way := victim.IP(fmt.Sprintf("route get %s from %s iif cni0", endpoint, a.pod(1))); !strings.Contains(way, " dev eth0") {
				t.Errorf("from the gateway, as it says, to its endpoint: %s", way)
			}
			before := victim.drops("past-overlay")
			ctx, cancel := context.WithTimeout(t.Context(), silence)
			defer cancel()
			if c, err := dialFrom(ctx, victim.pod, "tcp4", at(endpoint)); err == nil {
				_ = c.Close()
				t.Error("a TCP connection is taken for the tunnel")
			}
			eventually.Holds(t, "a drop of the guard", answerWait, func() bool { return victim.drops("past-overlay") > before })
		})
	}
}
