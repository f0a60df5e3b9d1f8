package pathtest

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/netops"
)

// severalGateways connects two clusters with two gateways each, and waits until each node has verified its path through
// each of its gateways.
func severalGateways(t *testing.T, mode records.GatewayMode) (a, b *testCluster) {
	t.Helper()
	a, b, _ = twoClusters(t)
	for _, c := range []*testCluster{a, b} {
		c.Mode = mode
		c.AddGateway()
	}
	connectBoth(a, b)
	return a, b
}

// losses are faults of a gateway, and their repairs.
var losses = []struct {
	name       string
	begin, end func(c *testCluster, g *clusters.Gateway)
}{
	{"killed", func(_ *testCluster, g *clusters.Gateway) { g.Helper.Kill() }, (*testCluster).Start},
	{
		"frozen",
		func(_ *testCluster, g *clusters.Gateway) { g.Helper.Signal(syscall.SIGSTOP) },
		func(_ *testCluster, g *clusters.Gateway) { g.Helper.Signal(syscall.SIGCONT) },
	},
	{
		"cut off from the peer",
		func(c *testCluster, g *clusters.Gateway) {
			dropPackets(c.Nodes[g.Node], fmt.Sprintf("ip daddr %[1]s udp dport 51840-51848; ip saddr %[1]s udp sport 51840-51848", g.Address()), "drop")
		},
		func(c *testCluster, g *clusters.Gateway) { removeDrops(c.Nodes[g.Node]) },
	},
	{
		"cut off from its cluster",
		func(c *testCluster, g *clusters.Gateway) {
			dropPackets(c.Nodes[g.Node], fmt.Sprintf("ip daddr %[1]s %[2]s; ip saddr %[1]s %[2]s", g.Address(), overlayPackets), "drop")
		},
		func(c *testCluster, g *clusters.Gateway) { removeDrops(c.Nodes[g.Node]) },
	},
}

// TestGatewayFaults takes one of two gateways down while packets flow. The other carries them soon. With -short, as in
// a slow guest, there is one fault.
func TestGatewayFaults(t *testing.T) {
	t.Parallel()
	a, b := severalGateways(t, records.ActiveActive)
	repaired := time.Time{}
	for i, fault := range losses {
		if testing.Short() && i > 0 {
			break
		}
		t.Run(fault.name, func(t *testing.T) {
			a.awaitAllUsed(repaired)
			late := lateness()
			f := startFlood(b, a)
			fault.begin(a, a.Gateways[1])
			f.await(t)
			lost, sent, silent := f.stop()
			limit := 20*time.Second + lateFactor*late() // ten times what a machine at rest takes
			t.Logf("%d of %d packets lost, %.2f s at most without any of %v", lost, sent, silent.Seconds(), limit)
			if silent > limit {
				t.Errorf("%v without any packet, want less than %v", silent, limit)
			}
			repaired = time.Now()
			fault.end(a, a.Gateways[1])
		})
	}
}

// awaitAllUsed waits until all nodes use all gateways, and the second has a report of that since it was repaired.
func (c *testCluster) awaitAllUsed(repaired time.Time) {
	c.t.Helper()
	c.awaitUnused(c.Gateways[0], false, time.Time{})
	c.awaitUnused(c.Gateways[1], false, repaired)
}

// awaitUnused waits until all nodes have reported, since a time, that they use a gateway, or do not.
func (c *testCluster) awaitUnused(g *clusters.Gateway, want bool, since time.Time) {
	c.t.Helper()
	c.AwaitStatus(g, func(s records.Status) error {
		if len(s.Nodes) < nodesPerCluster {
			return fmt.Errorf("it knows %d nodes", len(s.Nodes))
		}
		for _, n := range s.Nodes {
			if n.Unused != want || !n.LastEcho.After(since) {
				return fmt.Errorf("unused by node %s: %t, heard at %v, want %t", n.Name, n.Unused, n.LastEcho, want)
			}
		}
		return nil
	})
}

// TestStandbyGateways checks that in mode active-standby the first gateway carries all packets, and the second only if
// the first cannot.
func TestStandbyGateways(t *testing.T) {
	t.Parallel()
	a, b := severalGateways(t, records.ActiveStandby)
	for _, c := range []*testCluster{a, b} {
		c.awaitUnused(c.Gateways[0], false, time.Time{})
		c.awaitUnused(c.Gateways[1], true, time.Time{})
	}
	f := startFlood(a, b)
	a.Gateways[0].Helper.Kill()
	a.awaitUnused(a.Gateways[1], false, time.Time{})
	f.await(t)
	again := time.Now()
	a.startGateway()
	a.awaitUnused(a.Gateways[0], false, again)
	a.awaitUnused(a.Gateways[1], true, time.Time{})
	f.await(t)
	f.stop()
}

// TestScaledGateways adds a second gateway to each side in the record, and removes it.
func TestScaledGateways(t *testing.T) {
	t.Parallel()
	a, b := connected(t)
	f := startFlood(a, b)
	for _, c := range []*testCluster{a, b} {
		g := c.AddGateway()
		c.WriteObjects(g)
		c.Forward(g)
	}
	update := func() {
		a.Rewrite(a.Record(b.Cluster))
		b.Rewrite(b.Record(a.Cluster))
	}
	update()
	for _, c := range []*testCluster{a, b} {
		c.Start(c.Gateways[1])
	}
	a.AwaitProof()
	b.AwaitProof()
	f.await(t)
	for _, c := range []*testCluster{a, b} {
		c.Gateways[1].Helper.Kill()
		c.Gateways = c.Gateways[:1]
	}
	f.await(t)
	update()
	f.await(t)
	for _, c := range []*testCluster{a, b} {
		c.AwaitStatus(c.Gateways[0], func(s records.Status) error {
			if len(s.Tunnels) != 0 {
				return fmt.Errorf("%d tunnels", len(s.Tunnels))
			}
			return nil
		})
		if left := c.Gateways[0].Run("ip", "-o", "link"); strings.Contains(left, netops.TunnelLink(2)) {
			t.Errorf("gateway of %s has a second tunnel:\n%s", c.Name, left)
		}
	}
	lost, sent, silent := f.stop()
	t.Logf("%d of %d packets lost, %.2f s at most without any", lost, sent, silent.Seconds())
}
