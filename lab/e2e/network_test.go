package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/require"
	"liqonet.io/liqonet/lab/spec"
)

// side is one cluster of a connection, as a sender.
type side struct {
	cluster, other string
	self, peer     connectedSide // what this cluster sees of the other, and the other of this one
}

func sides(c connection) []side {
	return []side{{"a", "b", c.Local, c.Remote}, {"b", "a", c.Remote, c.Local}}
}

// TestNetwork connects clusters that use the same pod CIDR, from the installation to its removal, as three users of the
// levels view, operate and administer with only the printed roles. Clusters a and b run flannel, with VXLAN and
// iptables, and with host-gw and nftables. The long form has a third cluster, c.
func TestNetwork(t *testing.T) {
	inTurn(t, 6)
	ctx, cancel := context.WithTimeout(t.Context(), buildTimeout)
	defer cancel()
	pair := pluginPairs()[0].declared()
	declared := pair
	if !testing.Short() {
		declared.Clusters = append(declared.Clusters, spec.Cluster{Name: "c", Nodes: 1})
	}
	declared = declared.Complete()
	var clusters []string
	for _, c := range declared.Clusters {
		clusters = append(clusters, c.Name)
	}
	l := startLab(ctx, t, "e2e-network", declared)
	admin := newLiqoctl(ctx, t, l)
	crossing := startCrossing(ctx, t, l, declared)
	sendUnused(ctx, t, l, declared)
	crossing.awaitFree(ctx, t, declared)
	before := nodesBefore(ctx, t, l, declared)

	u := admin.users(ctx, t, clusters...)
	u.installer.atOnce(ctx, t, "init", clusters...)
	c := u.connector
	crossing.enter(connected)
	conn := c.connect(ctx, t)
	// Before pods have others to answer: they may send few ICMP errors a second.
	t.Run("a closed port", func(t *testing.T) { testClosedPort(ctx, t, l, conn) })
	keepSending(ctx, t, l, conn)
	checkFirst(t, conn)
	t.Run("every pod reaches every pod", func(t *testing.T) { testEveryPod(ctx, t, l, conn) })
	t.Run("nodes reach pods", func(t *testing.T) { testNodesReachPods(ctx, t, l, conn) })
	t.Run("connect again changes nothing", func(t *testing.T) {
		if again := c.connect(ctx, t); again.Changed {
			t.Error("the second connect changed something")
		}
	})
	long(t, "a preshared key that was altered is replaced", func(t *testing.T) { testAlteredKey(ctx, t, l, c) })
	t.Run("other parameters need --update", func(t *testing.T) { testUpdate(ctx, t, c) })
	t.Run("status is healthy", func(t *testing.T) { testStatus(ctx, t, u.looker) })
	long(t, "status goes on", func(t *testing.T) { testWatch(ctx, t, u.looker) })
	t.Run("addresses are in order", func(t *testing.T) {
		d, text := c.diagnose(ctx, t)
		passed := 0
		for _, check := range d.Checks {
			if check.ID == "LQ-OBJECTS-RESERVATIONS" && check.State == "passed" {
				passed++
			}
		}
		if passed != 2 {
			t.Errorf("in %d of two clusters:\n%s", passed, text)
		}
	})
	t.Run("10 MB of TCP", func(t *testing.T) { testBulk(ctx, t, l, conn) })
	t.Run("a byte more than the MTU", func(t *testing.T) { testTooLong(ctx, t, l, conn) })
	for _, host := range spec.OutsideHosts() {
		serveOutside(ctx, t, l, host)
	}
	t.Run("hosts outside are reached when exposed", func(t *testing.T) { before.outside = testExposed(ctx, t, u) })
	crossing.enter(nodePorts)
	for _, s := range sides(conn) {
		t.Run("a Service in "+s.cluster, func(t *testing.T) { testFarService(ctx, t, l, s, askers{outside: true, podByNode: true}) })
	}
	long(t, "a host outside exposed by b", func(t *testing.T) { testExposedHost(ctx, t, c, sides(conn)[1], declared.Clusters[1].NodeNetwork) })
	awaitClosed(ctx, t, admin)
	crossing.enter(connected)
	t.Run("nodes keep their MTUs", func(t *testing.T) { before.testMTUs(ctx, t, l) })
	long(t, "plugins are restarted", func(t *testing.T) {
		restartPlugins(ctx, t, l, declared)
		testEveryPod(ctx, t, l, conn)
		before.testMTUs(ctx, t, l)
	})
	t.Run("paths are tested on demand", func(t *testing.T) { testPaths(ctx, t, u) })
	t.Run("packets are followed", func(t *testing.T) { testTrace(ctx, t, u) })
	t.Run("faults are diagnosed", func(t *testing.T) { testDiagnose(ctx, t, u) })
	t.Run("a report has no secrets", func(t *testing.T) { testReport(ctx, t, u) })
	t.Run("users do no more than their level", func(t *testing.T) { testLevels(ctx, t, u) })
	t.Run("there is no second installation", func(t *testing.T) { testSecondInstallation(ctx, t, u) })
	t.Run("a node's helper writes its own Lease alone", func(t *testing.T) { testOwnLease(ctx, t, l) })
	t.Run("a gateway writes its own records alone", func(t *testing.T) { testGatewayAccount(ctx, t, l) })
	t.Run("pods are no more than helpers", func(t *testing.T) { testPodPolicy(ctx, t, l) })
	long(t, "a node that joins takes part", func(t *testing.T) {
		crossing.enter(joining) // see docs/contributing/security.md
		defer crossing.enter(connected)
		if _, err := l.AddNode(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		awaitRollout(ctx, t, l, "a", "default", "echo")
		awaitRollout(ctx, t, l, "a", "liqonet", "node")
		awaitHealthy(ctx, t, u.looker, 3)
		testEveryPod(ctx, t, l, conn)
	})
	long(t, "a node that takes no part is named", func(t *testing.T) { testUnverified(ctx, t, c, u.looker) })
	long(t, "two gateways on each side", func(t *testing.T) { testGateways(ctx, t, l, u, conn) })
	long(t, "three clusters", func(t *testing.T) { testReflection(ctx, t, u) })
	crossing.enter(disconnecting)
	t.Run("disconnect and reset leave nothing", func(t *testing.T) { testRemoval(ctx, t, u, clusters, before) })
	crossing.awaitFree(ctx, t, pair)
	t.Run("nothing crossed in the clear", crossing.judge)
}

// awaitClosed waits until the machine outside has no connection that is not closed by both ends.
func awaitClosed(ctx context.Context, t *testing.T, c liqoctl) {
	t.Helper()
	var open string
	await(ctx, t, func() bool {
		open = inNode(ctx, t, c, "outside", "ss -Htn state connected exclude time-wait")
		return open == ""
	}, func() string { return "open connections of the machine outside:\n" + open })
}

// testUnverified cuts a node off from the gateways: connect and status name it, and go on without it.
func testUnverified(ctx context.Context, t *testing.T, c, looker liqoctl) {
	const node = "b-2"
	inNode(ctx, t, c, node, `nft add table ip cut '{ chain in { type filter hook input priority -300; udp dport 6091 drop; }; }'`)
	var all []peeringState
	await(ctx, t, func() bool {
		var code int
		all, code = looker.status(ctx, t, "b")
		return code == 3 && len(all) == 1 && all[0].State == "degraded" && strings.Contains(all[0].Reason, node)
	}, func() string { return fmt.Sprintf("status: %+v", all) })
	args := []string{"network", "connect", "--context", "a", "--remote-context", "b", "--gw-server-service-type", "NodePort", "--timeout", "90s", "-o", "json"}
	out, said, code := c.run(ctx, t, args...)
	var conn connection
	if err := json.Unmarshal([]byte(out), &conn); err != nil || code != 3 {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, said)
	}
	if n := conn.Remote.UnverifiedNodes; len(n) != 1 || n[0].Name != node || n[0].Reason == "" || len(conn.Local.UnverifiedNodes) > 0 || conn.Changed {
		t.Errorf("connect names %+v, %+v, changed %v", conn.Local.UnverifiedNodes, n, conn.Changed)
	}
	if _, said, code = c.run(ctx, t, append(args, "--all-nodes", "--timeout", "1m")...); code != 1 || !strings.Contains(said, node) {
		t.Errorf("with --all-nodes: exit code %d\n%s", code, said)
	}
	inNode(ctx, t, c, node, "nft delete table ip cut")
	awaitHealthy(ctx, t, looker, 3)
	c.connect(ctx, t)
}

// testAlteredKey replaces the preshared key of one side, as a Secret restored from an older backup would.
func testAlteredKey(ctx context.Context, t *testing.T, l *lab.Lab, c liqoctl) {
	const secret = "peering-b"
	foreign := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("B", 42) + "A="))
	kubectl(ctx, t, l, "a", "-n", "liqonet", "patch", "secret", secret, "-p", `{"data":{"presharedKey":"`+foreign+`"}}`)
	if again := c.connect(ctx, t); !again.Changed {
		t.Error("connect says that the keys of both sides agree")
	}
	if again := c.connect(ctx, t); again.Changed {
		t.Error("the connect after that changed something")
	}
}

// checkFirst checks the answer of a first connect of clusters of two nodes, whose ranges all overlap.
func checkFirst(t *testing.T, conn connection) {
	t.Helper()
	if !conn.Changed {
		t.Error("the first connect says that it changed nothing")
	}
	for _, s := range sides(conn) {
		if len(s.self.Proof.Nodes) != 2 {
			t.Errorf("%s: %d nodes are proven, want 2", s.cluster, len(s.self.Proof.Nodes))
		}
		for _, m := range s.self.Addresses {
			if m.Original == m.ReachedAt {
				t.Errorf("%s: %s of %s keep their addresses though they collide", s.cluster, m.Kind, s.other)
			}
		}
	}
}

// testEveryPod sends TCP, UDP and ICMP between every two pods of different clusters and checks which source
// address the far end sees.
func testEveryPod(ctx context.Context, t *testing.T, l *lab.Lab, c connection) {
	t.Helper()
	for _, s := range sides(c) {
		for _, from := range nodesOf(ctx, t, l, s.cluster) {
			sender := podOn(ctx, t, l, s.cluster, from)
			var sent exchanges
			for _, to := range nodesOf(ctx, t, l, s.other) {
				receiver := podOn(ctx, t, l, s.other, to)
				target := s.self.seen(t, receiver.IP)
				sent.add(fmt.Sprintf("node=%s ip=%s from=%s:", to, receiver.IP, s.peer.seen(t, sender.IP)),
					"get http://"+target+":8080/",
					"tcp -size 1000000 "+target+":7",
					"udp -df -size "+c.fullSize()+" "+target+":7",
					"udp -size 4000 "+target+":7", // in fragments
				)
				sent.add("", "ping -df -size "+c.fullSize()+" "+target)
			}
			sent.test(ctx, t, l, s.cluster, sender)
		}
	}
}

// testNodesReachPods sends requests from every node to every pod of the other cluster: the pods see addresses of the
// nodes' external CIDR.
func testNodesReachPods(ctx context.Context, t *testing.T, l *lab.Lab, c connection) {
	for _, s := range sides(c) {
		external := s.peer.Addresses[len(s.peer.Addresses)-1]
		sources := map[string]string{}
		for _, from := range nodesOf(ctx, t, l, s.cluster) {
			for _, to := range nodesOf(ctx, t, l, s.other) {
				target := s.self.seen(t, podOn(ctx, t, l, s.other, to).IP)
				out, err := l.NodeExec(ctx, from, "workload", "get", "http://"+target+":8080/")
				if err != nil {
					t.Error(err)
					continue
				}
				_, source, _ := strings.Cut(string(out), "from=")
				a, err := netip.ParseAddrPort(strings.TrimSpace(source))
				if err != nil || !external.ReachedAt.Contains(a.Addr()) {
					t.Errorf("from node %s: %q, want an address of %s", from, out, external.ReachedAt)
				}
				if other, taken := sources[a.Addr().String()]; taken && other != from {
					t.Errorf("nodes %s and %s have the same address %s", from, other, a.Addr())
				}
				sources[a.Addr().String()] = from
			}
		}
	}
}

func testUpdate(ctx context.Context, t *testing.T, c liqoctl) {
	args := []string{"network", "connect", "--context", "a", "--remote-context", "b", "--gw-server-service-type", "NodePort", "--mtu", "1300"}
	_, said, code := c.run(ctx, t, args...)
	if code != 1 || !strings.Contains(said, "the peering of a and b has other settings:\n") || !strings.Contains(said, "-> 1300\n") || !strings.Contains(said, "--update") {
		t.Errorf("exit code %d, want 1 and what differs and the hint:\n%s", code, said)
	}
}

// peeringState has the fields of `network status -o json` that tests use.
type peeringState struct {
	Peer, State, Reason string
	Nodes               struct{ Ready, Total int }
}

func (c liqoctl) status(ctx context.Context, t *testing.T, cluster string) ([]peeringState, int) {
	t.Helper()
	out, said, code := c.run(ctx, t, "network", "status", "--context", cluster, "-o", "json")
	var all struct{ Peerings []peeringState }
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatalf("%v in\n%s%s", err, out, said)
	}
	return all.Peerings, code
}

// awaitText waits until a cluster's status has a text. It may also contain a late echo.
func (c liqoctl) awaitText(ctx context.Context, t *testing.T, cluster, want string) {
	t.Helper()
	var out, said string
	await(ctx, t, func() bool {
		out, said, _ = c.run(ctx, t, "network", "status", "--context", cluster, "-o", "wide")
		return strings.Contains(out, want)
	}, func() string { return fmt.Sprintf("status of %s has no %q:\n%s%s", cluster, want, out, said) })
}

func testStatus(ctx context.Context, t *testing.T, c liqoctl) {
	for cluster, peer := range map[string]string{"a": "b", "b": "a"} {
		var all []peeringState
		var code int
		await(ctx, t, func() bool {
			all, code = c.status(ctx, t, cluster)
			return code == 0 && len(all) == 1 && all[0].Peer == peer && all[0].State == "healthy" && all[0].Nodes.Ready == 2
		}, func() string { return fmt.Sprintf("status of %s: exit code %d, %+v", cluster, code, all) })
	}
	testBothSides(ctx, t, c)
}

// testBothSides expects both sides of the peering in one answer, and no disagreement.
func testBothSides(ctx context.Context, t *testing.T, c liqoctl) {
	t.Helper()
	var out, said string
	var code int
	var both struct {
		Healthy       bool
		Peerings      []struct{ Cluster, Peer, State string }
		Disagreements []struct{ About, Local, Remote string }
	}
	await(ctx, t, func() bool {
		out, said, code = c.run(ctx, t, "network", "status", "--context", "a", "--remote-context", "b", "-o", "json")
		err := json.Unmarshal([]byte(out), &both)
		return code == 0 && err == nil && both.Healthy && len(both.Peerings) == 2 && len(both.Disagreements) == 0
	}, func() string { return fmt.Sprintf("status of both sides: exit code %d, %+v\n%s", code, both, said) })
	for i, want := range []string{"a", "b"} {
		if got := both.Peerings[i]; got.Cluster != want || got.Peer == want || got.State != "healthy" {
			t.Errorf("side %d: %+v, want that of %s", i, got, want)
		}
	}
}

// awaitHealthy waits until cluster a's status has that many nodes ready.
func awaitHealthy(ctx context.Context, t *testing.T, c liqoctl, nodes int) {
	t.Helper()
	var all []peeringState
	await(ctx, t, func() bool {
		var code int
		all, code = c.status(ctx, t, "a")
		return code == 0 && len(all) == 1 && all[0].Nodes.Ready == nodes
	}, func() string { return fmt.Sprintf("status: %+v", all) })
}

// before is what a removal is to end, and what it is to leave.
type before struct {
	kernels, sizes map[string]string // of nodes: their kernels' state, and MTUs
	outside        netip.Addr        // by which b reaches an exposed host
}

// nodesBefore looks at all nodes, which have nothing of liqonet's yet.
func nodesBefore(ctx context.Context, t *testing.T, l *lab.Lab, declared spec.Spec) before {
	t.Helper()
	b := before{kernels: map[string]string{}, sizes: map[string]string{}}
	for _, cluster := range declared.Clusters {
		for _, node := range nodesOf(ctx, t, l, cluster.Name) {
			b.kernels[node], b.sizes[node] = kernelOf(ctx, t, l, node), mtusOf(ctx, t, l, node)
		}
	}
	return b
}

// testNodes checks that the nodes are as they were.
func (b before) testNodes(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	for node, want := range b.kernels {
		if diff := cmp.Diff(want, kernelOf(ctx, t, l, node)); diff != "" {
			t.Errorf("node %s before and after disconnect:\n%s", node, diff)
		}
	}
	b.testMTUs(ctx, t, l)
}

// testRemoval disconnects and resets, and checks that nothing remains in kernels and API servers.
func testRemoval(ctx context.Context, t *testing.T, users users, clusters []string, before before) {
	if _, said, code := users.installer.run(ctx, t, "network", "reset", "--context", "a"); code != 1 || !strings.Contains(said, "hint:") {
		t.Errorf("reset while a peering stands: exit code %d\n%s", code, said)
	}
	users.connector.must(ctx, t, "network", "disconnect", "--context", "a", "--remote-context", "b")
	l := users.admin.lab
	expectNothing(ctx, t, l, before.outside)
	if out := users.looker.must(ctx, t, "ipam", "list", "--context", "a", "-o", "wide"); strings.Contains(out, spec.OutsideHosts()[0].String()) {
		t.Errorf("addresses of hosts outside after disconnect:\n%s", out)
	}
	before.testNodes(ctx, t, l)
	if out, said, code := users.installer.run(ctx, t, "network", "reset", "--verify-only", "--context", "a"); code != 3 || !strings.Contains(out, "remains: ConfigMap liqonet/fabric") {
		t.Errorf("reset --verify-only of an installation: exit code %d\n%s%s", code, out, said)
	}
	for _, cluster := range clusters {
		if out := kubectl(ctx, t, l, cluster, "-n", "liqonet", "get", "all,configmaps,secrets,leases,poddisruptionbudgets", "-l", "liqonet.io/peering", "-o", "name"); out != "" {
			t.Errorf("objects of the peering in %s after disconnect:\n%s", cluster, out)
		}
	}
	users.installer.atOnce(ctx, t, "reset", clusters...)
	for _, cluster := range clusters {
		kubectl(ctx, t, l, cluster, "delete", "--ignore-not-found", "-f", users.roles)
		if out := kubectl(ctx, t, l, cluster, "get", "namespaces,clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings", "-o", "name"); strings.Contains(out, "liqonet") {
			t.Errorf("objects in %s after reset:\n%s", cluster, out)
		}
	}
	if out := users.admin.must(ctx, t, "network", "disconnect", "--context", "a", "--remote-context", "b"); strings.Contains(out, "error") {
		t.Errorf("disconnect of what is not connected: %s", out)
	}
}

// kernelOf is the state of a node's kernel that liqonet could change: links, addresses, rules, routes of every
// table, nexthops, neighbours and tables of nftables that are not the cluster's own. flannel has neighbours on its
// VXLAN, one for each other node.
func kernelOf(ctx context.Context, t *testing.T, l *lab.Lab, node string) string {
	t.Helper()
	const script = `ip -br link | grep -vE 'veth|lxc'; ip -4 -br addr | grep -vE 'veth|lxc'; ip rule; ip nexthop; ip neigh show nud permanent | grep -v 'dev flannel'
ip route show table all proto 76; nft list tables`
	out, err := l.NodeExec(ctx, node, "sh", "-c", script)
	require.NoError(t, err)
	return string(out)
}
