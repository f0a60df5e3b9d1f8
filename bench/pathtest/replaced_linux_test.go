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
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// TestEveryNodeReplaced replaces the nodes of the server's cluster one by one, by nodes with other addresses, and the
// client's gateway in between. Its record has the address of one node that does not exist at the end, and nothing
// updates that record.
func TestEveryNodeReplaced(t *testing.T) {
	t.Parallel()
	a, b := connected(t)
	for i, node := range []int{0, 1, 0, 1} {
		b.awaitEndpoints(a.NodeAddress(0), a.NodeAddress(1))
		begin := time.Now()
		g := a.replaceNode(node)
		a.awaitAllProven(begin)
		b.awaitAllProven(begin)
		t.Logf("node %d of the server replaced, gateway on the other one: all packets cross after %.1f s", node, time.Since(begin).Seconds())
		if i == 2 {
			continue // the server's last known node is replaced next
		}
		begin = time.Now()
		last := b.Gateways[0]
		last.Helper.Kill()
		if i == 3 { // another pod; otherwise another process in the same pod
			last = b.ReplaceGatewayPod(last)
		}
		b.Start(last)
		a.awaitAllProven(begin)
		b.awaitAllProven(begin)
		t.Logf("gateway of the client started again: all packets cross after %.1f s", time.Since(begin).Seconds())
		if g.Helper.Logged("panic") > 0 {
			t.Error("the server's gateway has ended")
		}
	}
	if text := b.Get(records.PeeringName("peer")).Data[records.DataKey]; strings.Contains(text, a.NodeAddress(0).String()) || strings.Contains(text, a.NodeAddress(1).String()) {
		t.Errorf("somebody has written the client's record anew: %s", text)
	}
}

// replaceNode ends a node like a power failure, runs the gateway on the other one, and creates another node in its
// place.
func (c *testCluster) replaceNode(i int) *clusters.Gateway {
	c.t.Helper()
	name, old := c.NodeName(i), c.Gateways[0]
	c.Nodes[i].IP("link set eth0 down")
	c.NodeHelpers[i].Kill()
	old.Helper.Kill()
	leases := c.API.CoordinationV1().Leases(records.DefaultNamespace)
	all, err := leases.List(c.t.Context(), metav1.ListOptions{})
	require.NoError(c.t, err)
	for _, l := range all.Items { // with their owner
		if l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity == name {
			err = leases.Delete(c.t.Context(), l.Name, metav1.DeleteOptions{})
		}
	}
	require.NoError(c.t, err)
	require.NoError(c.t, c.API.CoreV1().Nodes().Delete(c.t.Context(), name, metav1.DeleteOptions{}))
	c.Replaced[i]++
	c.AddNode(i)
	c.Nodes[1-i].IP(fmt.Sprintf("route replace %s via %s", c.PodsOf(i), c.NodeAddress(i)))
	c.Create(c.NodeObject(i))
	g := old
	if old.Node == i {
		g = c.ReplaceGatewayPod(old)
	}
	c.Nodes[1-i].Run("nft", "add table ip services; delete table ip services")
	c.Forward(g)
	c.StartNode(i)
	c.Start(g)
	return g
}

// awaitEndpoints waits until the client's gateway has recorded addresses of the server's nodes.
func (c *testCluster) awaitEndpoints(want ...netip.Addr) {
	c.t.Helper()
	wait.Succeeds(c.t, joining, func() error {
		g, err := records.Decode[records.Gateway](c.Get(c.Gateways[0].ID().Name()).Data[records.DataKey])
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
	c.AwaitStatus(c.Gateways[0], func(s records.Status) error {
		proven := map[string]bool{}
		for _, n := range s.Nodes {
			proven[n.Name] = n.LastProof.After(since)
		}
		for i := range c.Nodes {
			if !proven[c.NodeName(i)] {
				c.RenewStatus(c.Gateways[0])
				return fmt.Errorf("packets of node %s do not cross: %+v, %+v", c.NodeName(i), s.TunnelStatus, s.Nodes)
			}
		}
		return nil
	})
}
