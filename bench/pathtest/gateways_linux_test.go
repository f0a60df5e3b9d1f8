package pathtest

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops"
)

// severalGateways connects two clusters with two gateways each, and waits until each node has verified its path through
// each of its gateways.
func severalGateways(t *testing.T, mode records.GatewayMode) (a, b *testCluster) {
	t.Helper()
	k := combinations()[0]
	a, b, _ = twoClusters(t)
	for _, c := range []*testCluster{a, b} {
		c.mode = mode
		c.addGateway()
	}
	connectBoth(k, a, b)
	return a, b
}

// losses are faults of a gateway, and their repairs.
var losses = []struct {
	name       string
	begin, end func(c *testCluster, g *testGateway)
}{
	{"killed", func(_ *testCluster, g *testGateway) { g.helper.Kill() }, (*testCluster).start},
	{
		"frozen",
		func(_ *testCluster, g *testGateway) { g.helper.Signal(syscall.SIGSTOP) },
		func(_ *testCluster, g *testGateway) { g.helper.Signal(syscall.SIGCONT) },
	},
	{
		"cut off from the peer",
		func(c *testCluster, g *testGateway) {
			dropPackets(c.nodes[g.node], fmt.Sprintf("ip daddr %[1]s udp dport 51840-51848; ip saddr %[1]s udp sport 51840-51848", g.address()), "drop")
		},
		func(c *testCluster, g *testGateway) { removeDrops(c.nodes[g.node]) },
	},
	{
		"cut off from its cluster",
		func(c *testCluster, g *testGateway) {
			dropPackets(c.nodes[g.node], fmt.Sprintf("ip daddr %[1]s %[2]s; ip saddr %[1]s %[2]s", g.address(), overlayPackets), "drop")
		},
		func(c *testCluster, g *testGateway) { removeDrops(c.nodes[g.node]) },
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
			fault.begin(a, a.gateways[1])
			f.await(t)
			lost, sent, silent := f.stop()
			limit := 20*time.Second + lateFactor*late() // ten times what a machine at rest takes
			t.Logf("%d of %d packets lost, %.2f s at most without any of %v", lost, sent, silent.Seconds(), limit)
			if silent > limit {
				t.Errorf("%v without any packet, want less than %v", silent, limit)
			}
			repaired = time.Now()
			fault.end(a, a.gateways[1])
		})
	}
}

// awaitAllUsed waits until all nodes use all gateways, and the second has a report of that since it was repaired.
func (c *testCluster) awaitAllUsed(repaired time.Time) {
	c.t.Helper()
	c.awaitUnused(c.gateways[0], false, time.Time{})
	c.awaitUnused(c.gateways[1], false, repaired)
}

// awaitUnused waits until all nodes have reported, since a time, that they use a gateway, or do not.
func (c *testCluster) awaitUnused(g *testGateway, want bool, since time.Time) {
	c.t.Helper()
	wait.Succeeds(c.t, joining, func() error {
		s, err := c.statusOf(g)
		if err != nil {
			return err
		}
		if len(s.Nodes) < nodesPerCluster {
			return fmt.Errorf("gateway %d knows %d nodes", g.number, len(s.Nodes))
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
		c.awaitUnused(c.gateways[0], false, time.Time{})
		c.awaitUnused(c.gateways[1], true, time.Time{})
	}
	f := startFlood(a, b)
	a.gateways[0].helper.Kill()
	a.awaitUnused(a.gateways[1], false, time.Time{})
	f.await(t)
	again := time.Now()
	a.startGateway()
	a.awaitUnused(a.gateways[0], false, again)
	a.awaitUnused(a.gateways[1], true, time.Time{})
	f.await(t)
	f.stop()
}

// TestScaledGateways adds a second gateway to each side in the record, and removes it.
func TestScaledGateways(t *testing.T) {
	t.Parallel()
	k := combinations()[0]
	a, b, _ := twoClusters(t)
	connectBoth(k, a, b)
	f := startFlood(a, b)
	for _, c := range []*testCluster{a, b} {
		g := c.addGateway()
		c.writeObjects(g)
		c.balance(g)
	}
	update := func() {
		a.rewrite(a.peering(k, b))
		b.rewrite(b.peering(k, a))
	}
	update()
	for _, c := range []*testCluster{a, b} {
		c.start(c.gateways[1])
	}
	a.awaitProof(k)
	b.awaitProof(k)
	f.await(t)
	for _, c := range []*testCluster{a, b} {
		c.gateways[1].helper.Kill()
		c.gateways = c.gateways[:1]
	}
	f.await(t)
	update()
	f.await(t)
	for _, c := range []*testCluster{a, b} {
		wait.Succeeds(t, joining, func() error {
			if s, err := c.status(); err != nil || len(s.Tunnels) != 0 {
				return fmt.Errorf("%d tunnels, %w", len(s.Tunnels), err)
			}
			return nil
		})
		if left := c.gateways[0].Run("ip", "-o", "link"); strings.Contains(left, netops.TunnelLink(2)) {
			t.Errorf("gateway of %s has a second tunnel:\n%s", c.name, left)
		}
	}
	lost, sent, silent := f.stop()
	t.Logf("%d of %d packets lost, %.2f s at most without any", lost, sent, silent.Seconds())
}
