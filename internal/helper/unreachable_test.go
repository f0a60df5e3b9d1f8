//go:build linux

package helper

import (
	"net/netip"
	"slices"
	"testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// TestUnreachableGateway checks that a node without a route to one peering's gateway serves the others, and reports the
// error.
func TestUnreachableGateway(t *testing.T) {
	ns := netns.New(t)
	ns.IP("link add eth0 type veth peer name world")
	ns.IP("link set world up")
	ns.IP("link set eth0 up")
	ns.IP("addr add 172.31.0.1/24 dev eth0")
	ns.IP("route add default via 172.31.0.254")
	ns.IP("route add unreachable 198.51.100.0/24")
	lost, lostGateway := testPeering(), testGateway()
	lost.Name, lost.Gateways[0].OverlayID, lost.Gateways[0].Address = "a", 8, netip.MustParseAddr("10.80.128.2")
	lost.Peer.ClusterID, lost.Peer.Name = "id-c", "c"
	lost.Peer.PodCIDRs, lost.Peer.ExternalCIDR = []records.Mapping{mapping("10.244.0.0/16", "10.12.0.0/16")}, mapping("10.70.0.0/16", "10.72.0.0/16")
	lostGateway.Pod, lostGateway.PodIP = "gateway-a-x", netip.MustParseAddr("198.51.100.9")

	api := newTestAPI(t)
	api.add(testNode("n1"), gatewayPod(lost.Name, lostGateway), gatewayPod("b", testGateway()), fabricMap(t, testFabric()),
		peeringMap(t, lost), gatewayMap(t, lost.Name, lostGateway), peeringMap(t, testPeering()), gatewayMap(t, "b", testGateway()))
	p := api.start(ns, job{Node: &Node{Name: "n1"}})
	var got records.Node
	defer func() {
		if t.Failed() {
			t.Logf("the report: %+v", got)
		}
	}()
	wait.Until(t, "report of both peerings, and of the way to the gateway of one", patience, func() bool {
		got = api.nodeReport()
		_, lostToo := got.OverlaySources[firstGateway(lost.Name)]
		return slices.Equal(got.Peerings, []string{lost.Name, "b"}) && got.OverlaySources[firstGateway("b")].IsValid() && !lostToo
	})
	if err := p.ready(); err == nil {
		t.Error("the helper is ready, although it has no route to a gateway")
	}
}
