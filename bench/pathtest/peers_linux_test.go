package pathtest

import (
	"flag"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/bench/load"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/process"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops"
)

// Parameters of TestManyPeers: the results for 64 peers and 10 gateways are in docs/contributing/measurements.md.
var (
	peers         = flag.Int("peers", 6, "`NUMBER` of peerings of a cluster, at most 100")
	gatewaysOfOne = flag.Int("gateways-of-one", 2, "`NUMBER` of these whose gateway runs, all on one node")
)

// TestManyPeers gives a cluster many peerings at once. A node has a path to each, and one node runs the gateways of
// several, which it verifies.
func TestManyPeers(t *testing.T) {
	t.Parallel()
	a, b, _ := twoClusters(t)
	a.StartNodes()
	a.WriteFabric()
	awaitReady(t, a.Nodes[0])
	before, errBefore := process.Time(a.NodeHelpers[0].PID)
	begin := time.Now()
	var gateways []*clusters.Gateway
	for i := range *peers {
		gateways = append(gateways, a.peerWithMany(b, i, i < *gatewaysOfOne))
	}
	wait.Succeeds(t, joining, func() error {
		routes := a.Nodes[0].Run("ip", "route", "show", "table", fmt.Sprint(netops.RoutingTable))
		for i := range *peers {
			for _, r := range seenOfMany(i) {
				if !strings.Contains(routes, r.String()+" nhid") {
					return fmt.Errorf("no path to %s:\n%s", r, routes)
				}
			}
		}
		return nil
	})
	t.Logf("node has paths to %d peers after %v", *peers, time.Since(begin).Round(time.Millisecond))
	for _, g := range gateways[:*gatewaysOfOne] {
		a.awaitUnused(g, false, time.Time{})
	}
	t.Logf("%d gateways on one node are answered by both nodes after %v", *gatewaysOfOne, time.Since(begin).Round(time.Millisecond))
	after, errAfter := process.Time(a.NodeHelpers[0].PID)
	resident, errResident := load.Resident(a.NodeHelpers[0].PID)
	if errBefore != nil || errAfter != nil || errResident != nil {
		t.Fatal(errBefore, errAfter, errResident)
	}
	n := a.Nodes[0]
	count := func(text, of string) int { return strings.Count(n.Run("sh", "-c", text), of) }
	t.Logf("node helper: %d MiB, %.1f s of a core so far; %d links, %d rules of nftables, %d routing rules", resident>>20, (after - before).Seconds(),
		count("ip -o link show", " lqn-gw"), count("nft -a list ruleset", "# handle"), count("ip rule", "lookup"))
	metrics, err := process.Ask(n.Handle, "/metrics")
	require.NoError(t, err)
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, "liqonet_kernel_pass_duration_seconds_sum") || strings.HasPrefix(line, "liqonet_kernel_pass_duration_seconds_count") {
			t.Log(strings.TrimSpace(line))
		}
	}
	const rest = 5 * time.Second
	all := []*process.Process{a.NodeHelpers[0]}
	for _, g := range gateways[:*gatewaysOfOne] {
		all = append(all, g.Helper)
	}
	taken := make([]time.Duration, len(all))
	for _, end := range []bool{false, true} {
		for i, p := range all {
			now, err := process.Time(p.PID)
			require.NoError(t, err)
			taken[i] = now - taken[i]
		}
		if !end {
			<-time.After(rest)
		}
	}
	var most int
	var sum time.Duration
	for i, p := range all[1:] {
		resident, err := load.Resident(p.PID)
		require.NoError(t, err)
		most, sum = max(most, resident), sum+taken[i+1]
	}
	t.Logf("at rest: node helper %.3f of a core; %d gateways %.3f together, %d MiB each at most", taken[0].Seconds()/rest.Seconds(), *gatewaysOfOne,
		sum.Seconds()/rest.Seconds(), most>>20)
	for i := range *peers {
		a.Delete(records.PeeringName(manyName(i)))
	}
	begin = time.Now()
	wait.Succeeds(t, joining, func() error {
		if left := n.Run("ip", "-o", "link"); strings.Contains(left, "lqn-gw") {
			return fmt.Errorf("node has left:\n%s", left)
		}
		return nil
	})
	t.Logf("all are removed after %v", time.Since(begin).Round(time.Millisecond))
}

// seenOfMany returns the remapped ranges of a peer: of its pods, and of its nodes and hosts.
func seenOfMany(i int) [2]netip.Prefix {
	return [2]netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(100 + i), 0, 0}), 16), netip.PrefixFrom(netip.AddrFrom4([4]byte{11, byte(100 + i), 0, 0}), 16)}
}

func manyName(i int) string { return fmt.Sprintf("many-%d", i) }

// peerWithMany writes a peering, with other ranges than all others, and starts its gateway on the first node, or only
// writes its record.
func (c *testCluster) peerWithMany(peer *testCluster, i int, runs bool) *clusters.Gateway {
	c.t.Helper()
	p := c.Record(peer.Cluster)
	p.Name, p.Number, p.Peer.ClusterID, p.Peer.Name = manyName(i), 2+i, "id-"+manyName(i), manyName(i)
	seen := seenOfMany(i)
	p.Peer.PodCIDRs[0].Seen, p.Peer.ExternalCIDRs[0].Seen = seen[0], seen[1]
	g := &clusters.Gateway{Peering: p.Name, Number: 1, Host: byte(20 + i), Key: c.Gateways[0].Key, Keys: c.Gateways[0].Keys}
	c.AddGatewayPod(g)
	c.Write(records.PeeringName(p.Name), p)
	if runs {
		c.WriteObjects(g)
		c.Start(g)
		return g
	}
	c.Write(g.ID().StatusName(), nil)
	c.Write(g.ID().Name(), records.Gateway{Version: records.SchemaVersion, Pod: g.Pod(), Node: c.NodeName(g.Node), PodIP: g.Address()})
	return g
}
