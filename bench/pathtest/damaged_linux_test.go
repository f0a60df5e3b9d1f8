package pathtest

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/store"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/kernel"
)

// reported is longer than a node's helper takes to write its first report.
const reported = 3 * time.Second

// TestDamagedRecords damages records while packets cross, restarts helpers and a node, and removes the gateway's pod.
// Existing paths continue, the node without state drops packets for the peer, as does one whose reservations lack the
// peer, and no packet goes to an address of a former gateway.
func TestDamagedRecords(t *testing.T) {
	t.Parallel()
	a, b, _ := twoClusters(t)
	a.reserve(b)
	connectBoth(a, b)
	servePods(t, a, b)

	path := pathIn(a.Nodes[0])
	for _, name := range []string{records.FabricName, records.IPAMName, records.PeeringName("peer")} {
		good := a.Damage(name)
		a.NodeHelpers[0].Kill()
		a.StartNode(0)
		wait.Until(t, "the helper refuses "+name, joining, func() bool { return a.NodeHelpers[0].Logged("invalid records") > 0 })
		<-time.After(reported) // a report without the node's paths would end them at the gateway
		for range someRounds {
			if _, err := seenBy(a.Pods[0], b.RemappedPod(0)); err != nil {
				t.Fatalf("%s is damaged, and the helper restarted: %v", name, err)
			}
		}
		if now := pathIn(a.Nodes[0]); now != path {
			t.Errorf("%s is damaged, and the helper restarted: the path is\n%s, and was\n%s", name, now, path)
		}
		a.Put(good)
		awaitReady(t, a.Nodes[0])
	}

	good := a.Damage(records.PeeringName("peer"))
	a.Nodes[0].Run("nft", "delete", "table", "ip", netops.Table)
	awaitFirewall(t, a.Nodes[0])
	expectAll(a, b)
	for _, n := range a.Nodes {
		awaitReady(t, n)
	}

	a.NodeHelpers[1].Kill()
	a.resetNode(1)
	a.StartNode(1)
	a.awaitBlocked(1, b)
	awaitReady(t, a.Nodes[1])
	wait.Succeeds(t, joining, func() error { // a gateway that renews its tunnel rejects packets for a moment
		source, err := seenBy(a.Pods[0], b.RemappedPod(0))
		if err == nil && source != a.RemappedPod(0).String() {
			t.Errorf("the other node: %q", source)
		}
		return err
	})
	a.Put(good)
	expectAll(a, b)

	empty, err := ipam.New()
	require.NoError(t, err)
	reservations := a.Edit(records.IPAMName, func(string) string { return store.Encode(empty) })
	a.Damage(good.Name)
	a.NodeHelpers[0].Kill()
	a.StartNode(0)
	a.awaitBlocked(0, b)
	a.Put(reservations)
	a.Put(good)
	expectAll(a, b)

	pods := a.API.CoreV1().Pods(records.DefaultNamespace)
	pod, err := pods.Get(t.Context(), a.Gateways[0].Pod(), metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{}))
	const grace = 4 * time.Second // of five, after which a node treats the gateway as gone
	gone := time.Now()
	if _, err := seenBy(a.Pods[0], b.RemappedPod(1)); err != nil && time.Since(gone) < grace {
		t.Errorf("as soon as the gateway's pod is gone: %v", err)
	}
	for i := range a.Nodes {
		a.awaitBlocked(i, b)
	}
	a.Create(pod)
	expectAll(a, b)
}

// reserve writes the reservations by which a cluster reaches its peer.
func (c *testCluster) reserve(peer *testCluster) {
	c.t.Helper()
	registry, err := ipam.Restore(nil, []ipam.Reservation{
		{Range: clusters.InternalCIDR, Owner: ipam.Cluster, Purpose: ipam.InternalCIDR},
		{Range: records.GatewayAddresses(clusters.InternalCIDR, 1), Owner: ipam.Peering("peer"), Purpose: ipam.Gateways},
		{Range: peer.Remapped, Owner: ipam.Peering("peer"), Purpose: ipam.PeerPods, Real: clusters.PodCIDR},
		{Range: clusters.PeerExternal, Owner: ipam.Peering("peer"), Purpose: ipam.PeerExternal, Real: clusters.ExternalCIDR},
	})
	require.NoError(c.t, err)
	c.Create(clusters.ConfigMap(records.IPAMName, store.Encode(registry)))
}

// resetNode removes all liqonet state from a node's kernel, as a restart does.
func (c *testCluster) resetNode(i int) {
	c.t.Helper()
	kernel, err := kernel.OpenAt(c.Nodes[i].FD())
	require.NoError(c.t, err)
	defer func() { _ = kernel.Close() }()
	require.NoError(c.t, kernel.Cleanup())
}

// awaitBlocked waits until the routes and rules of a node block the peer.
func (c *testCluster) awaitBlocked(i int, peer *testCluster) {
	c.t.Helper()
	n := c.Nodes[i]
	for _, target := range []netip.Addr{peer.RemappedPod(0), clusters.PeerExternal.Addr().Next()} {
		wait.Succeeds(c.t, joining, func() error {
			if out := n.Run("sh", "-c", fmt.Sprintf("ip route get %s 2>&1 || true", target)); !strings.Contains(out, "No route to host") {
				return fmt.Errorf("node %s has a path to %s: %s", c.NodeName(i), target, out)
			}
			if set := n.Run("sh", "-c", "nft list set ip liqonet peers 2>&1 || true"); !strings.Contains(set, peer.Remapped.String()) {
				return fmt.Errorf("node %s does not guard %s: %s", c.NodeName(i), peer.Remapped, set)
			}
			return nil
		})
	}
}
