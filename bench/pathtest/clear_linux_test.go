package pathtest

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops/kernel"
)

// someRounds is the minimum duration of a fault, in rounds of all senders.
const someRounds = 5

// fault is a part of the path that is removed.
type fault struct{ name, command string }

var nodeFaults = []fault{
	{"overlay down", "ip link set lqn-gw8 down"},
	{"overlay gone", "ip link del lqn-gw8"},
	{"overlay out of its group", "ip link set dev lqn-gw8 group 0"},
	{"no rule", "ip rule del priority 104"},
	{"no routes", flushTable(7600)},
	{"no nexthops", "ip nexthop flush protocol 76"},
	{"no neighbours", "ip neighbour flush dev lqn-gw8 nud permanent"},
	{"no firewall", "nft delete table ip liqonet"},
	{"no underlay", "ip link set eth0 down"},
}

var gatewayFaults = []fault{
	{"overlay down", "ip link set lqn-overlay down"},
	{"overlay gone", "ip link del lqn-overlay"},
	{"tunnel down", "ip link set lqn-tunnel down"},
	{"tunnel gone", "ip link del lqn-tunnel"},
	{"out of their groups", "ip link set dev lqn-overlay group 0; ip link set dev lqn-tunnel group 0"},
	{"no rule to the peer", "ip rule del priority 53"},
	{"no rule from the peer", "ip rule del priority 54"},
	{"no routes to the peer", flushTable(7601)},
	{"no routes from the peer", flushTable(7602)},
	{"no nexthops", "ip nexthop flush protocol 76"},
	{"no firewall", "nft delete table ip liqonet"},
	{"no underlay", "ip link set eth0 down"},
}

// flushTable returns a command that removes each route of a table: ip(8) cannot flush those by nexthop objects.
func flushTable(table int) string {
	return fmt.Sprintf(`ip route show table %[1]d | while read -r a b _; do
		[ "$a" != unreachable ] || a="$a $b"
		ip route del $a table %[1]d
	done`, table)
}

// TestNothingInTheClear captures on every link between two clusters from before they are connected until after they are
// disconnected, while all pods and nodes of each send to all pods of the other. It removes one part of the path after
// another, helpers included. The capture contains none of the payload.
func TestNothingInTheClear(t *testing.T) {
	t.Parallel()
	for _, k := range combinations() {
		t.Run(fmt.Sprintf("%s/%s", k.Overlay, k.WireGuard), func(t *testing.T) { newConversation(t, k).run() })
	}
}

// conversation is traffic from pods and nodes of two clusters to the pods of the other.
type conversation struct {
	t         *testing.T
	a, b      *testCluster
	talkers   map[string]*talker // by node; those of its pod with suffix "/pod"
	listeners *listeners
	capture   *capture
}

func newConversation(t *testing.T, k clusters.Kinds) *conversation {
	a, b, underlay := clustersOf(t, k)
	c := &conversation{t: t, a: a, b: b, talkers: map[string]*talker{}}
	c.capture = startCapture(t, underlay, a, b)
	c.listeners = startListeners(t, a, b)
	for _, side := range [][2]*testCluster{{a, b}, {b, a}} {
		from, to := side[0], side[1]
		var targets []netip.Addr
		for i := range to.Pods {
			targets = append(targets, to.RemappedPod(i))
		}
		for i := range from.Nodes {
			node, pod := from.NodeName(i), from.NodeName(i)+"/pod"
			c.talkers[node] = startTalker(t, from.Nodes[i], node, targets)
			c.talkers[pod] = startTalker(t, from.Pods[i], pod, targets)
		}
	}
	return c
}

// connect connects the clusters, and waits until each pod receives packets of the peering.
func (c *conversation) connect() {
	// Without a peering, nothing encrypts the packets. The capture must contain them, as it would contain others later.
	c.awaitCaptured(markBefore)
	c.a.reserve(c.b)
	c.a.Connect(c.b.Cluster)
	c.b.Connect(c.a.Cluster)
	for _, cluster := range []*testCluster{c.a, c.b} {
		cluster.awaitApplied()
		c.setMark(cluster, markSecret)
	}
	c.awaitReceived("connect")
}

func (c *conversation) awaitCaptured(mark string) {
	c.t.Helper()
	wait.Until(c.t, "a captured packet of "+mark, joining, func() bool { return len(c.capture.captured(mark)) > 0 })
}

// expectEncrypted ends the test if a packet of the peering was captured.
func (c *conversation) expectEncrypted(after string) {
	c.t.Helper()
	if sightings := c.capture.captured(markSecret); len(sightings) > 0 {
		c.t.Fatalf("%s: %d packets in the clear, the first %s", after, len(sightings), sightings[0])
	}
}

func (c *conversation) run() {
	c.connect()
	c.awaitKept()
	for _, f := range nodeFaults {
		c.inject("node, "+f.name, c.a.Nodes[1], f, func() { c.a.NodeHelpers[1].Kill() }, func() { c.a.StartNode(1) })
	}
	for _, f := range gatewayFaults {
		c.inject("gateway, "+f.name, c.a.Gateways[0].Namespace, f, c.killGateway, c.a.startGateway)
	}
	c.rebootNode(1)
	c.disconnect()
	c.expectEncrypted("disconnect")
	c.capture.complete()
}

// setMark changes the payload of pods and nodes of a cluster.
func (c *conversation) setMark(cluster *testCluster, mark string) {
	for i := range cluster.Nodes {
		c.setMarkAt(cluster.NodeName(i), mark)
	}
}

func (c *conversation) setMarkAt(node, mark string) {
	c.talkers[node].setMark(mark)
	c.talkers[node+"/pod"].setMark(mark)
}

// awaitReceived waits until every pod has received new payload.
func (c *conversation) awaitReceived(after string) {
	c.t.Helper()
	before := c.listeners.count(markSecret)
	wait.Succeeds(c.t, joining, func() error {
		now := c.listeners.count(markSecret)
		for _, cluster := range []*testCluster{c.a, c.b} {
			for i := range cluster.Pods {
				if pod := cluster.NodeName(i); now[pod] <= before[pod]+someRounds {
					return fmt.Errorf("after %s: the pod on %s has heard %d packets, and %d before", after, pod, now[pod], before[pod])
				}
			}
		}
		return nil
	})
}

// awaitKept waits until every pod has received packets of all pods and nodes of the peer over sockets from before the
// peering: nodes have deleted the conntrack entries of these flows.
func (c *conversation) awaitKept() {
	c.t.Helper()
	wait.Succeeds(c.t, joining, func() error {
		for _, side := range [][2]*testCluster{{c.a, c.b}, {c.b, c.a}} {
			for i := range side[0].Nodes {
				for _, talker := range []string{side[0].NodeName(i), side[0].NodeName(i) + "/pod"} {
					for j := range side[1].Pods {
						if pod := side[1].NodeName(j); !c.listeners.hasKept(pod, talker) {
							return fmt.Errorf("the pod on %s has not heard %s by a socket from before the peering", pod, talker)
						}
					}
				}
			}
		}
		return nil
	})
}

// awaitRounds waits for some more rounds of all senders.
func (c *conversation) awaitRounds() {
	c.t.Helper()
	before := map[string]int64{}
	for name, k := range c.talkers {
		before[name] = k.rounds.Load()
	}
	wait.Succeeds(c.t, joining, func() error {
		for name, k := range c.talkers {
			if !k.silent() && k.rounds.Load() < before[name]+someRounds {
				return fmt.Errorf("%s is silent", name)
			}
		}
		return nil
	})
}

// inject removes a part while its helper runs, which restores it, and again while the helper does not run. A short test
// does only the latter, unless the tunnel ends with the helper.
func (c *conversation) inject(name string, in netns.Namespace, f fault, kill, begin func()) {
	c.t.Helper()
	routes, whole := defaultRoutes(in), pathIn(in)
	mortal := in == c.a.Gateways[0].Namespace && c.a.Kinds.WireGuard == records.Userspace
	for _, dead := range []bool{false, true} {
		if dead && mortal && f != gatewayFaults[0] || !dead && !mortal && testing.Short() {
			continue
		}
		if dead {
			kill()
		}
		out, err := in.Command(c.t.Context(), "sh", "-c", f.command).CombinedOutput()
		if err != nil && dead { // a running helper may restore the part concurrently
			c.t.Fatalf("%s: %v\n%s", name, err, out)
		}
		c.awaitRounds()
		if f.name == "no underlay" {
			in.IP("link set eth0 up")
			for _, route := range slices.Backward(routes) { // the default route last: gateway pods are not behind it
				in.IP("route replace " + route)
			}
		}
		if dead {
			begin()
		}
		c.awaitReceived(name)
		// Packets also cross through the other nodes, and without a firewall.
		wait.Succeeds(c.t, joining, func() error {
			if now := pathIn(in); now != whole {
				return fmt.Errorf("after %s there is\n%s\nwant\n%s", name, now, whole)
			}
			return nil
		})
		c.expectEncrypted(name)
	}
}

// pathIn returns the state of the path in a namespace.
func pathIn(ns netns.Namespace) string {
	return ns.Run("sh", "-c", `{ ip rule; ip route show table all | grep -E '760[0-3]|lqn-'; ip nexthop show protocol 76
		ip neigh show nud permanent; ip -br link show type vxlan; ip -br link show type geneve
		ip -br link show group 19457; ip -br link show group 19458; nft list tables ip; nft list tables ip6; } | sort`)
}

// awaitFirewall waits until liqonet's table exists.
func awaitFirewall(t *testing.T, ns netns.Namespace) {
	t.Helper()
	wait.Succeeds(t, joining, func() error {
		return ns.Command(t.Context(), "nft", "list", "table", "ip", "liqonet").Run()
	})
}

// awaitLifted waits until a node's boot guard is removed.
func awaitLifted(t *testing.T, n netns.Namespace) {
	t.Helper()
	wait.Until(t, "the boot guard is lifted", joining, func() bool {
		return !strings.Contains(n.Run("nft", "list", "tables", "ip"), kernel.BootTable)
	})
}

// defaultRoutes returns the routes that are removed with eth0 and that only the CNI restores.
func defaultRoutes(ns netns.Namespace) []string {
	var routes []string
	for line := range strings.Lines(ns.IP("route show table main")) {
		if words := strings.Fields(line); slices.Contains(words, "via") && slices.Contains(words, "eth0") {
			routes = append(routes, strings.Join(words, " "))
		}
	}
	return routes
}

// killGateway kills the helper of a's gateway. A tunnel in userspace ends with it.
func (c *conversation) killGateway() { c.a.Gateways[0].Helper.Kill() }

// rebootNode removes all liqonet state of a node, as a restart does, after which the node loads its boot guard. Its
// pods send continuously.
func (c *conversation) rebootNode(i int) {
	c.t.Helper()
	n := c.a.Nodes[i]
	guard := bootGuard(c.t, clusters.OverlayPorts[0], c.b.Remapped, clusters.PeerExternal)
	c.setMarkAt(c.a.NodeName(i), "")
	c.a.NodeHelpers[i].Kill()
	n.Run("nft", "delete table ip liqonet; delete table ip6 liqonet")
	n.IP("rule del priority 104", "link del lqn-gw8")
	n.Run("sh", "-c", flushTable(7600))
	for range 2 { // twice: the file can be loaded at any time
		n.Feed(guard, "nft", "-f", "-")
	}
	c.setMarkAt(c.a.NodeName(i), markSecret)
	c.awaitRounds()
	c.a.StartNode(i)
	awaitFirewall(c.t, n)
	awaitLifted(c.t, n)
	c.awaitReceived("reboot of a node")
	c.expectEncrypted("reboot of a node")
}

// disconnect ends the peering. A node with liqonet state sends nothing unencrypted.
func (c *conversation) disconnect() {
	for _, cluster := range []*testCluster{c.a, c.b} {
		c.setMark(cluster, markLeaving)
		cluster.disconnect()
	}
	for _, s := range c.capture.captured(markLeaving) {
		if s.state != "" {
			c.t.Errorf("a packet in the clear while there still is something of ours: %s", s)
		}
	}
	c.awaitCaptured(markLeaving)
}

// awaitApplied waits until every node has applied the peering.
func (c *testCluster) awaitApplied() {
	c.t.Helper()
	c.AwaitReports(func(n records.Node) error {
		if !slices.Contains(n.Peerings, "peer") {
			return errors.New("it has no peering yet")
		}
		return nil
	})
}
