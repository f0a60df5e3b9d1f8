package kernel

import (
	"fmt"
	"net/netip"
	"testing"

	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/netops"
)

// TestAddressOfGateway: a remote pod has the address of this cluster's gateway pod. Both reach each other.
func TestAddressOfGateway(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, a, b side) {
		address := a.inPods(0, a.gatewayNumber(0))
		expectTwin(t, a, b, address)
	})
}

// TestAddressOfNode: a remote pod has the address of a node of this cluster. B receives the tunnel of A's gateway from
// a translated address, as is always the case if the networks of their nodes overlap.
func TestAddressOfNode(t *testing.T) {
	t.Parallel()
	l := layout{
		podsA: parsed.Prefixes("10.244.0.0/16"), podsB: parsed.Prefixes("10.245.0.0/16"),
		seenA: parsed.Prefixes("10.244.0.0/16"), seenB: parsed.Prefixes("10.12.0.0/16"),
	}
	eachOverlay(t, func(t *testing.T, kind netops.LinkKind) {
		a, b := l.build(t, func(a, _ *side) {
			a.nodeNetwork, a.hidden = netip.MustParsePrefix("10.245.1.0/24"), true
		})
		join(kind, a, b)
		for i := range a.nodes {
			expectTwin(t, a, b, a.node(i))
		}
	})
}

// expectTwin exchanges packets with a pod of B that has an address of a node or gateway of A.
func expectTwin(t *testing.T, a, b side, address netip.Addr) {
	t.Helper()
	if !b.podCIDR(0).Contains(address) {
		t.Fatalf("%s is no address of a pod on node b0", address)
	}
	twin, name := b.nodes[0].pod, "b0"
	if address != b.pod(0) {
		twin, name = b.attach(0, address), "twin"
		serve(twin, address, name)
	}
	for i, n := range a.nodes {
		expect(t, n.pod, at(b.seen(address)), name, a.seenPod(i))
		expect(t, n.namespace, at(b.seen(address)), name, a.seenNode(i))
		expect(t, twin, at(a.seenPod(i)), fmt.Sprintf("a%d", i), b.seen(address))
		n.pod.Run("ping", "-q", "-c1", "-w20", b.seen(address).String())
	}
}

// nodesAmongPods joins clusters in which nodes of the server have addresses in its pod CIDR, as in flat networks.
func nodesAmongPods(t *testing.T, kind netops.LinkKind) (client, server side) {
	t.Helper()
	l := layout{
		podsA: parsed.Prefixes("10.245.0.0/16"), podsB: parsed.Prefixes("10.244.0.0/16"),
		seenA: parsed.Prefixes("10.245.0.0/16"), seenB: parsed.Prefixes("10.244.0.0/16"),
	}
	a, b := l.build(t, func(_, b *side) { b.nodeNetwork = netip.MustParsePrefix("10.244.250.0/24") })
	join(kind, a, b)
	return a, b
}

// TestEndpointAmongPods: the client's own tunnel packets are not routed as traffic to pods.
func TestEndpointAmongPods(t *testing.T) {
	t.Parallel()
	eachOverlay(t, func(t *testing.T, kind netops.LinkKind) {
		a, b := nodesAmongPods(t, kind)
		expectAll(t, a, b)
		expectAll(t, b, a)
	})
}
