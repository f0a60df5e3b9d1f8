package pathtest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// TestEveryNodeReplaced replaces the nodes of the server's cluster one by one, by nodes with other addresses, and the
// client's gateway in between. Its record has the address of one node that does not exist at the end, and nothing
// updates that record.
func TestEveryNodeReplaced(t *testing.T) {
	t.Parallel()
	k := combinations()[0]
	a, b, underlay := twoClusters(t)
	connectBoth(k, a, b)
	for i, node := range []int{0, 1, 0, 1} {
		b.awaitEndpoints(a.node(0), a.node(1))
		begin := time.Now()
		g := a.replaceNode(underlay, node)
		a.awaitAllProven(begin)
		b.awaitAllProven(begin)
		t.Logf("node %d of the server replaced, gateway on the other one: all packets cross after %.1f s", node, time.Since(begin).Seconds())
		if i == 2 {
			continue // the server's last known node is replaced next
		}
		begin = time.Now()
		last := b.gateways[0]
		last.helper.Kill()
		if i == 3 { // another pod; otherwise another process in the same pod
			last = b.replaceGatewayPod(last)
		}
		b.start(last)
		a.awaitAllProven(begin)
		b.awaitAllProven(begin)
		t.Logf("gateway of the client started again: all packets cross after %.1f s", time.Since(begin).Seconds())
		if g.helper.Logged("panic") > 0 {
			t.Error("the server's gateway has ended")
		}
	}
	if text := b.get(records.PeeringName("peer")).Data[records.DataKey]; strings.Contains(text, a.node(0).String()) || strings.Contains(text, a.node(1).String()) {
		t.Errorf("somebody has written the client's record anew: %s", text)
	}
}

// replaceNode ends a node like a power failure, runs the gateway on the other one, and creates another node in its
// place.
func (c *testCluster) replaceNode(underlay netns.Namespace, i int) *testGateway {
	c.t.Helper()
	name, old := c.nodeName(i), c.gateways[0]
	c.nodes[i].IP("link set eth0 down")
	c.nodeHelpers[i].Kill()
	old.helper.Kill()
	leases := c.api.CoordinationV1().Leases(records.DefaultNamespace)
	all, err := leases.List(c.t.Context(), metav1.ListOptions{})
	require.NoError(c.t, err)
	for _, l := range all.Items { // with their owner
		if l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity == name {
			err = leases.Delete(c.t.Context(), l.Name, metav1.DeleteOptions{})
		}
	}
	require.NoError(c.t, err)
	require.NoError(c.t, c.api.CoreV1().Nodes().Delete(c.t.Context(), name, metav1.DeleteOptions{}))
	c.replaced[i]++
	c.addNode(underlay, i)
	c.nodes[1-i].IP(fmt.Sprintf("route replace %s via %s", c.podsOf(i), c.node(i)))
	c.create(c.nodeObject(i))
	g := old
	if old.node == i {
		g = c.replaceGatewayPod(old)
	}
	c.nodes[1-i].Run("nft", "add table ip services; delete table ip services")
	c.balance(g)
	c.startNode(i)
	c.start(g)
	return g
}

// awaitEndpoints waits until the client's gateway has recorded addresses of the server's nodes.
func (c *testCluster) awaitEndpoints(want ...netip.Addr) {
	c.t.Helper()
	wait.Succeeds(c.t, joining, func() error {
		g, err := records.Decode[records.Gateway](c.get(c.gateways[0].id().Name()).Data[records.DataKey])
		for _, a := range want {
			if !slices.Contains(g.PeerEndpoints, a) {
				return fmt.Errorf("the client's gateway knows %v, want %v", g.PeerEndpoints, want)
			}
		}
		return err
	})
}

// awaitAllProven waits until packets of every current node have crossed since a time.
func (c *testCluster) awaitAllProven(since time.Time) {
	c.t.Helper()
	wait.Succeeds(c.t, joining, func() error {
		s, err := c.status()
		if err != nil {
			return err
		}
		proven := map[string]bool{}
		for _, n := range s.Nodes {
			proven[n.Name] = n.LastProof.After(since)
		}
		for i := range c.nodes {
			if !proven[c.nodeName(i)] {
				c.renewStatus(c.gateways[0])
				return fmt.Errorf("packets of node %s do not cross: %+v, %+v", c.nodeName(i), s.TunnelStatus, s.Nodes)
			}
		}
		return nil
	})
}
