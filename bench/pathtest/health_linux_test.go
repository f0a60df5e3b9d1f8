package pathtest

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"liqonet.io/liqonet/bench/verdict"
	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops"
)

const (
	// shownWithin is the time within which a fault of the path, and its end, must be shown.
	shownWithin = 5 * time.Second
	// faultRounds is the number of attempts for a fault. lateFactor is the accepted delay of a state as a multiple of
	// the machine's scheduling delay: showing a state takes dozens of consecutive steps.
	faultRounds = 6
	lateFactor  = 50
	// lossShownWithin is shownWithin for a loss of two in a hundred, which takes longer to measure.
	lossShownWithin = 15 * time.Second
)

// pathFault is a fault, its repair, and the states that it causes.
type pathFault struct {
	name    string
	a, b    health.State // expected states of the clusters; "": unchanged
	reason  string       // in cluster a's
	within  time.Duration
	begin   func(a, b *testCluster)
	recover func(a, b *testCluster)
}

// Packets at the nodes, as nftables expressions.
var (
	tunnelPackets = fmt.Sprintf("ip daddr %[1]s meta l4proto { tcp, udp } th dport { %[2]d, %[3]d }; ip saddr %[1]s meta l4proto { tcp, udp } th sport { %[2]d, %[3]d }",
		clusters.InPods(0, clusters.GatewayNumber), clusters.ListenPort, netops.WebSocketPort)
	overlayPackets = "udp dport { 6091, 6191 }" // see clusters.OverlayPorts
)

// dropPackets makes a node drop packets that match one of the expressions, which are separated by semicolons.
func dropPackets(n netns.Namespace, packets, verdict string) {
	var rules strings.Builder
	for match := range strings.SplitSeq(packets, "; ") {
		fmt.Fprintf(&rules, "%s %s; ", match, verdict)
	}
	n.Run("nft", fmt.Sprintf("table ip fault { chain forward { type filter hook forward priority -500; %[1]s}; "+
		"chain out { type filter hook output priority -500; %[1]s}; chain in { type filter hook input priority -500; %[1]s}; }", rules.String()))
}

func removeDrops(nodes ...netns.Namespace) {
	for _, n := range nodes {
		n.Run("nft", "delete", "table", "ip", "fault")
	}
}

// dropping returns a fault by which a node of cluster a drops packets.
func dropping(node int, packets, verdict string, f pathFault) pathFault {
	f.begin = func(a, _ *testCluster) { dropPackets(a.Nodes[node], packets, verdict) }
	f.recover = func(a, _ *testCluster) { removeDrops(a.Nodes[node]) }
	return f
}

var pathFaults = []pathFault{
	dropping(0, tunnelPackets, "drop", pathFault{
		name: "the path between the gateways is cut", a: health.Down, b: health.Down, reason: "the peer's gateway answered last",
	}),
	dropping(0, tunnelPackets, "numgen random mod 100 < 48 drop", pathFault{
		name: "48 % loss between the gateways", a: health.Degraded, b: health.Degraded, reason: " % of the echoes between the gateways are lost",
	}),
	dropping(0, tunnelPackets, "numgen random mod 100 < 2 drop", pathFault{
		name: "2 % loss between the gateways", a: health.Degraded, reason: " % of the echoes between the gateways are lost", within: lossShownWithin,
	}),
	dropping(0, tunnelPackets, "meta length > 1200 drop", pathFault{
		name: "large packets are lost", a: health.Down, b: health.Down, reason: "no answer from nodes of the peer to node a-1, a-2",
	}),
	dropping(1, overlayPackets, "drop", pathFault{
		name: "the overlay of a node is cut", a: health.Degraded, reason: "no echo between gateway and node a-2",
	}),
	{
		name: "the overlay of the peer's nodes is cut", a: health.Down, b: health.Down, reason: "no answer from nodes of the peer to node a-1, a-2",
		begin: func(_, b *testCluster) {
			dropPackets(b.Nodes[0], overlayPackets, "drop")
			dropPackets(b.Nodes[1], overlayPackets, "drop")
		},
		recover: func(_, b *testCluster) { removeDrops(b.Nodes[:]...) },
	},
	{
		name: "the helper of a node ends", a: health.Degraded, reason: "no echo between gateway and node a-2",
		begin:   func(a, _ *testCluster) { a.NodeHelpers[1].Kill() },
		recover: func(a, _ *testCluster) { a.StartNode(1) },
	},
	{
		name: "the gateway hangs", a: health.Down, b: health.Down, reason: "node a-2 reports: no answer from the gateway",
		begin:   func(a, _ *testCluster) { a.Gateways[0].Helper.Signal(syscall.SIGSTOP) },
		recover: func(a, _ *testCluster) { a.Gateways[0].Helper.Signal(syscall.SIGCONT) },
	},
	{
		name: "the gateway ends", a: health.Down, b: health.Down, reason: "node a-2 reports: no answer from the gateway",
		begin:   func(a, _ *testCluster) { a.Gateways[0].Helper.Kill() },
		recover: func(a, _ *testCluster) { a.startGateway() },
	},
	{
		name: "the gateway's node loses power", a: health.Down, b: health.Down, reason: "node a-2 reports: no answer from the gateway",
		begin: func(a, _ *testCluster) {
			a.Nodes[0].IP("link set eth0 down")
			a.Gateways[0].Helper.Kill()
			a.NodeHelpers[0].Kill()
		},
		recover: func(a, _ *testCluster) {
			a.Nodes[0].IP("link set eth0 up", fmt.Sprintf("route add default via %s", clusters.Outside), fmt.Sprintf("route add %s via %s", a.PodsOf(1), a.NodeAddress(1)))
			a.StartNode(0)
			a.startGateway()
		},
	},
}

// TestFaultsAreShown checks that after any fault of the path, the state of the peering changes within five seconds, and
// is healthy within five seconds of the repair; a delay of the machine is added. With -short, as in a slow guest, the
// time is not tested.
func TestFaultsAreShown(t *testing.T) {
	t.Parallel()
	a, b, _ := twoClusters(t)
	a.Connect(b.Cluster)
	b.Connect(a.Cluster)
	rows := []string{"| fault | state | shown after, s | healthy after the repair, s |", "|---|---|---|---|"}
	for _, f := range pathFaults {
		t.Run(f.name, func(t *testing.T) { rows = append(rows, f.shows(t, a, b)) })
	}
	t.Log("\n" + strings.Join(rows, "\n")) // see docs/contributing/measurements.md
}

// shows fails unless the fault and its repair are shown in time in one of several attempts. It returns a row with the
// times of the last one.
func (f pathFault) shows(t *testing.T, a, b *testCluster) (row string) {
	t.Helper()
	for range faultRounds {
		late := lateness()
		shown, over := f.try(t, a, b)
		allowed := lateFactor * late()
		t.Logf("%s after %.1f s, healthy again after %.1f s; %v more are allowed", f.a, shown.Seconds(), over.Seconds(), allowed)
		row = fmt.Sprintf("| %s | `%s` | %.1f | %.1f |", f.name, f.a, shown.Seconds(), over.Seconds())
		if testing.Short() || shown <= max(f.within, shownWithin)+allowed && over <= shownWithin+allowed {
			return row
		}
	}
	t.Errorf("never shown within %v and over within %v", max(f.within, shownWithin), shownWithin)
	return row
}

// lateness measures the scheduling delay of goroutines, until the returned function is called, which returns the
// maximum.
func lateness() func() time.Duration {
	const step = 10 * time.Millisecond
	end, most := make(chan struct{}), make(chan time.Duration)
	go func() {
		tick := time.NewTicker(step)
		defer tick.Stop()
		last, worst := time.Now(), time.Duration(0)
		for {
			select {
			case <-end:
				most <- worst
				return
			case now := <-tick.C:
				worst, last = max(worst, time.Since(last)-step), now
			}
		}
	}()
	return func() time.Duration { close(end); return <-most }
}

// try causes the fault, and returns how long both clusters took to show it, and its repair. The states in between must
// not be wrong.
func (f pathFault) try(t *testing.T, a, b *testCluster) (shown, over time.Duration) {
	t.Helper()
	awaitHealthy(a, b)
	begin := time.Now()
	f.begin(a, b)
	left := time.Time{}
	leave := func() { left = time.Now() }
	a.leaves(health.Healthy, leave)
	shown = left.Sub(begin)
	a.awaitState(f.a, f.reason)
	if f.b != "" {
		b.leaves(health.Healthy, leave)
		shown = max(shown, left.Sub(begin))
		b.awaitState(f.b, "")
	}
	begin = time.Now()
	f.recover(a, b)
	awaitHealthy(a, b)
	return shown, time.Since(begin)
}

// leaves waits until a cluster's state changes.
func (c *testCluster) leaves(state health.State, then func()) {
	c.t.Helper()
	wait.Succeeds(c.t, joining, func() error {
		if now, _ := c.judge(); now == state {
			return fmt.Errorf("cluster %s is %s", c.Name, state)
		}
		then()
		return nil
	})
}

// awaitState waits for a cluster's state. It must not be connecting, because it was connected before.
func (c *testCluster) awaitState(want health.State, reason string) {
	c.t.Helper()
	proven := false
	wait.Succeeds(c.t, joining, func() error {
		state, why := c.judge()
		if proven && state == health.Connecting {
			c.t.Errorf("cluster %s is connecting, though its peer has answered: %s", c.Name, why)
		}
		if s, err := c.status(); err == nil && !s.LastEcho.IsZero() {
			proven = true
		}
		if state != want || !strings.Contains(why, reason) {
			return fmt.Errorf("cluster %s is %s (%s), want %s (%s)", c.Name, state, why, want, reason)
		}
		return nil
	})
}

func awaitHealthy(clusters ...*testCluster) {
	for _, c := range clusters {
		c.t.Helper()
		c.awaitState(health.Healthy, "")
	}
}

// judge returns the state that `network status` shows for the reports.
func (c *testCluster) judge() (health.State, string) {
	c.t.Helper()
	var nodes []string
	for i := range c.Nodes {
		nodes = append(nodes, c.NodeName(i))
	}
	state, why, err := verdict.Of(c.t.Context(), c.API, records.GatewayIDs("peer", len(c.Gateways)), clusters.PathMTU, nodes...)
	require.NoError(c.t, err)
	return state, why
}

// recordPods adds the pods of a cluster's nodes to its API server.
func (c *testCluster) recordPods() {
	c.t.Helper()
	for i := range c.Nodes {
		c.Create(clusters.PodObject("default", fmt.Sprintf("pod-%d", i), c.NodeName(i), clusters.InPods(i, clusters.PodNumber), nil))
	}
}

// detour is a fault caused by ip(8) on a node of cluster a, whose peer's pods are in 10.12.0.0/16, and its reason.
func detour(name, reason string, commands ...string) pathFault {
	do := func(c *testCluster, verb string) {
		for _, command := range commands {
			if verb != "add" {
				command, _, _ = strings.Cut(command, " action ") // of IPsec
			}
			c.Nodes[1].IP(strings.Replace(command, " add ", " "+verb+" ", 1))
		}
	}
	return pathFault{
		name: name, a: health.Degraded, reason: reason,
		begin: func(a, _ *testCluster) { do(a, "add") }, recover: func(a, _ *testCluster) { do(a, "del") },
	}
}

// TestDetoursAreShown checks that foreign rules, routes and IPsec policies that divert packets of a node's pods are
// shown within five seconds, by name, even though the packets that verify the path, to nodes of the peer, cross.
func TestDetoursAreShown(t *testing.T) {
	t.Parallel()
	a, b, _ := twoClusters(t)
	a.recordPods()
	a.Connect(b.Cluster)
	b.Connect(a.Cluster)
	const to, drop = "rule add prio 50 to 10.12.0.0/16 lookup 999", "route add blackhole default table 999"
	main := "rule add prio 50 lookup main suppress_prefixlength 0"
	faults := []pathFault{
		detour("blackhole", "route 0.0.0.0/0 blackhole table 999", to, drop),
		detour("prohibit", "route 0.0.0.0/0 prohibit table 999", to, "route add prohibit default table 999"),
		detour("unreachable", "route 0.0.0.0/0 unreachable table 999", to, "route add unreachable default table 999"),
		detour("smaller prefix", "rule 50 to 10.12.7.0/24 table 999", "rule add prio 50 to 10.12.7.0/24 lookup 999", drop),
		detour("by a pod's link", "iif cni0 table 999", "rule add prio 50 iif cni0 to 10.12.0.0/16 lookup 999", drop),
		detour("by a pod's source", "rule 50 from 10.244.2.0/24 to 10.12.0.0/16 table 999", "rule add prio 50 from 10.244.2.0/24 to 10.12.0.0/16 lookup 999", drop),
		detour("type of service", "with tos 0x10 meet", "rule add prio 50 to 10.12.0.0/16 tos 0x10 blackhole"),
		detour("port", "with ipproto 6 dport 443 meet", "rule add prio 50 to 10.12.0.0/16 ipproto tcp dport 443 blackhole"),
		detour("IPsec policy", "src 0.0.0.0/0 dst 10.12.0.0/16 dir out action block", "xfrm policy add dst 10.12.0.0/16 dir out action block"),
		detour("route in main", "rule 50 table 254, route 10.12.0.0/16 table 254", main, "route add 10.12.0.0/16 via "+clusters.Outside.String()),
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) { f.shows(t, a, b) })
	}
	t.Run("route in main, later than its rule", func(t *testing.T) {
		a.Nodes[1].For(t).IP(main)
		defer a.Nodes[1].For(t).IP(strings.Replace(main, " add ", " del ", 1))
		detour("", "rule 50 table 254, route 10.12.3.0/24 table 254", "route add 10.12.3.0/24 via "+clusters.Outside.String()).shows(t, a, b)
	})
}
