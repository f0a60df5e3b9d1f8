package pathtest

import (
	"syscall"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/process"
	"liqonet.io/liqonet/internal/testbed/wait"
)

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
