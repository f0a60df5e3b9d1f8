package pathtest

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/process"
	"liqonet.io/liqonet/internal/testbed/wait"
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

// TestBrokenTunnel: a gateway one of whose tunnels cannot be opened, as another program has its port, carries packets
// through the other one after a restart.
func TestBrokenTunnel(t *testing.T) {
	t.Parallel()
	a, b := connected(t)
	f := startFlood(a, b)
	server := a.Gateways[0]
	server.Helper.Kill()
	taken := server.Namespace.For(t).ListenUDP(fmt.Sprintf("0.0.0.0:%d", clusters.ListenPort+1))
	t.Cleanup(func() { _ = taken.Close() })
	second := b.AddGateway()
	b.WriteObjects(second)
	a.Rewrite(a.Record(b.Cluster))
	b.Rewrite(b.Record(a.Cluster))
	a.Start(server)
	a.AwaitStatus(server, func(s records.Status) error {
		if len(s.Tunnels) != 2 || s.LastEcho.IsZero() || time.Since(s.LastEcho) > health.ReportEvery {
			return fmt.Errorf("no recent echo: %+v", s)
		}
		return nil
	})
	f.await(t)
}

// drainRounds is the number of attempts on a machine that itself stops processes.
const drainRounds = 6

// standstill is how long helpers are stopped: twice the time after which a silent gateway is left, and short enough
// that the kernel's queues hold the packets sent meanwhile.
const standstill = 800 * time.Millisecond

// standstills are the processes that are stopped while gateway 2 of cluster a drains.
var standstills = []struct {
	name    string
	until   string // log message of that gateway after which they are stopped; "": its end
	stopped func(a, b *testCluster) []*process.Process
}{
	{"nothing", "", func(_, _ *testCluster) []*process.Process { return nil }},
	{"the gateway that drains", "draining", func(a, _ *testCluster) []*process.Process { return []*process.Process{a.Gateways[1].Helper} }},
	{"the other gateway", "draining", func(a, _ *testCluster) []*process.Process { return []*process.Process{a.Gateways[0].Helper} }},
	{"the other gateway after the drain", "", func(a, _ *testCluster) []*process.Process { return []*process.Process{a.Gateways[0].Helper} }},
	{"the gateways of the peer", "draining", func(_, b *testCluster) []*process.Process { return b.helpers() }},
	{"nodes", "draining", func(a, _ *testCluster) []*process.Process { return a.NodeHelpers[:] }},
}

// helpers are the helpers of the gateways.
func (c *testCluster) helpers() (all []*process.Process) {
	for _, g := range c.Gateways {
		all = append(all, g.Helper)
	}
	return all
}

// TestDrainedGateways checks that a gateway that ends by SIGTERM loses no packet, at the server and at the client, even
// if it, the other gateway, the peer's gateways or the nodes' helpers are stopped meanwhile. A round in which the whole
// machine stopped for as long does not count. With -short, as in a slow guest, losses are only logged.
func TestDrainedGateways(t *testing.T) {
	t.Parallel()
	a, b := severalGateways(t, records.ActiveActive)
	for _, s := range standstills {
		for _, ends := range [][2]*testCluster{{a, b}, {b, a}} {
			c, peer := ends[0], ends[1]
			if c == b && s.stopped(a, b) != nil && s.until != "" {
				continue // same as at the server
			}
			t.Run(s.name+"/"+c.Name, func(t *testing.T) {
				for range drainRounds {
					late := lateness()
					lost := drained(t, c, peer, s.until, s.stopped(c, peer))
					if stood := late(); lost == 0 || testing.Short() {
						return
					} else if stood < standstill {
						t.Fatalf("%d packets lost, and the machine stood still for %v at most", lost, stood)
					}
				}
			})
		}
	}
}

// drained ends gateway 2 of a cluster by SIGTERM and starts it again, and returns how many packets were lost. After the
// gateway has logged the text until, or has ended, the processes in still are stopped.
func drained(t *testing.T, c, peer *testCluster, until string, still []*process.Process) (lost int) {
	t.Helper()
	g := c.Gateways[1]
	c.awaitAllUsed(time.Now())
	f := startFlood(c, peer)
	begin := time.Now()
	g.Helper.Signal(syscall.SIGTERM)
	ended := make(chan struct{})
	go func() { g.Helper.Wait(); close(ended) }()
	if until == "" {
		<-ended
	} else {
		wait.Until(t, "the log has "+until, joining, func() bool { return g.Helper.Logged(until) > 0 })
	}
	for _, p := range still {
		p.Signal(syscall.SIGSTOP)
	}
	<-time.After(standstill)
	for _, p := range still {
		p.Signal(syscall.SIGCONT)
	}
	<-ended
	took := time.Since(begin)
	<-time.After(time.Second) // lost packets would be detected within this time
	lost, sent, _ := f.stop()
	t.Logf("gateway %d of %s ended after %.2f s: %d of %d packets lost", g.Number, c.Name, took.Seconds(), lost, sent)
	c.Start(g)
	return lost
}
