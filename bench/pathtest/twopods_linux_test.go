package pathtest

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/process"
	"liqonet.io/liqonet/internal/testbed/wait"
)

const (
	// undisturbed is how long packets are counted once there is one pod again, and undisturbedLoss the accepted loss in
	// percent, on a busy machine: two alternating pods lose half of the packets.
	undisturbed     = 10 * time.Second
	undisturbedLoss = 2
)

// TestTwoPodsWithOneKey cuts a gateway's node off from its API server only. A second pod replaces it on the other node,
// while the first one keeps running with the same key. The first one steps down as soon as the peer announces the
// second, and the peer stays with the second, even when the container of the first one restarts. With -short, as in a
// slow guest, losses are only logged.
func TestTwoPodsWithOneKey(t *testing.T) {
	t.Parallel()
	t.Run("client", func(t *testing.T) {
		t.Parallel()
		a, b, _ := twoClusters(t)
		old := cutOff(a, b, b)
		begin := time.Now()
		b.Start(b.ReplaceGatewayPod(old))
		traffic := startTraffic(t, a, b)
		b.expectSuccessor(old, begin, traffic)
		b.expectRestarted(old, traffic)
	})
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		a, b, _ := udpClusters(t)
		b.OtherEndpoints = []string{fmt.Sprintf("%s:%d", a.NodeAddress(0), clusters.ServerPort)}
		b.Endpoint = netip.AddrPortFrom(a.NodeAddress(1), clusters.ServerPort)
		old := cutOff(a, b, a)
		traffic := startTraffic(t, a, b)
		// The Service leads to the new pod, but on the node that is cut off.
		g := a.ReplaceGatewayPod(old)
		dropPackets(a.Nodes[0], tunnelPackets, "drop")
		a.Nodes[1].Run("nft", "delete", "table", "ip", "services")
		a.ForwardAt(g, a.Nodes[1])
		a.Start(g)
		a.awaitPod(g, time.Now())
		removeDrops(a.Nodes[0])
		// The client tries the other endpoint when this one does not answer.
		begin := time.Now()
		dropPackets(a.Nodes[1], fmt.Sprintf("ip daddr %[1]s udp dport %[2]d; ip saddr %[1]s udp sport %[2]d", g.Address(), clusters.ListenPort), "drop")
		a.awaitSteppedDown(old)
		removeDrops(a.Nodes[1])
		a.expectSuccessor(old, begin, traffic)
	})
}

// cutOff connects two clusters, and cuts the first node of one of them, with the gateway on it, off from their API
// server.
func cutOff(a, b, from *testCluster) *clusters.Gateway {
	socket, cut := from.ServeAPI()
	from.Sockets[0] = socket
	connectBoth(a, b)
	cut()
	return from.Gateways[0]
}

// awaitPod waits until a pod is the gateway, and packets of the nodes that are not cut off cross through it.
func (c *testCluster) awaitPod(g *clusters.Gateway, since time.Time) {
	c.t.Helper()
	c.AwaitStatus(g, func(s records.Status) error {
		if s.Pod != g.Pod() || !s.LastEcho.After(since) {
			return fmt.Errorf("pod %s reports, whose last echo was at %v; want %s and %v", s.Pod, s.LastEcho, g.Pod(), since)
		}
		for _, n := range s.Nodes {
			if n.Name == c.NodeName(1) && n.LastProof.After(since) {
				return nil
			}
		}
		c.RenewStatus(g)
		return fmt.Errorf("packets of node %s do not cross: %+v", c.NodeName(1), s.Nodes)
	})
}

// awaitSteppedDown waits until a pod of a gateway has no tunnel any more.
func (c *testCluster) awaitSteppedDown(g *clusters.Gateway) {
	c.t.Helper()
	wait.Until(c.t, "the first pod steps down", joining, func() bool { return g.Helper.Logged(`"stepsDown":true`) > 0 })
}

// expectSuccessor waits until an earlier pod has stepped down, and counts packets of the other node, which the later
// pod forwards.
func (c *testCluster) expectSuccessor(old *clusters.Gateway, begin time.Time, k *traffic) {
	c.t.Helper()
	c.awaitSteppedDown(old)
	c.awaitPod(c.Gateways[0], time.Now())
	took := time.Since(begin)
	before := k.count(c.NodeName(1))
	c.t.Logf("one pod again after %.1f s, in which %d of %d packets were lost", took.Seconds(), before.lost(), before.sent)
	c.expectUndisturbed(k)
}

// expectUndisturbed counts packets of the other node for a while: they cross.
func (c *testCluster) expectUndisturbed(k *traffic) {
	c.t.Helper()
	all := k.during(c.t, c.NodeName(1), undisturbed)
	c.t.Logf("then %d of %d packets were lost", all.lost(), all.sent)
	if !testing.Short() && all.lost()*100 > undisturbedLoss*all.sent {
		c.t.Errorf("%d of %d packets were lost", all.lost(), all.sent)
	}
}

// expectRestarted restarts the container of an earlier pod, whose API server is away. The later pod keeps the tunnel.
func (c *testCluster) expectRestarted(old *clusters.Gateway, k *traffic) {
	c.t.Helper()
	old.Helper.Kill()
	c.Start(old)
	wait.Succeeds(c.t, joining, func() error { _, err := process.Ask(old.Handle, "/livez"); return err })
	c.expectUndisturbed(k)
	c.awaitPod(c.Gateways[0], time.Now())
	if _, err := process.Ask(old.Handle, "/livez"); err != nil {
		c.t.Errorf("the kubelet restarts the first pod: %v", err)
	}
}
