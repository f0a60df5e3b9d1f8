package e2e

import (
	"context"
	"net/netip"
	"testing"

	"liqonet.io/liqonet/lab/spec"
)

// TestNetworkDisjoint connects clusters whose ranges do not overlap: addresses are not remapped. Both have both address
// families, a with IPv6 as the primary one, and load balancers, those of a with names. The MTU of the network between
// them is smaller than that of the nodes' links, and the nodes filter reverse paths strictly. Snapshots from before and
// after are compared, for each way in which a peering is removed.
func TestNetworkDisjoint(t *testing.T) {
	inTurn(t, 5)
	ctx, cancel := context.WithTimeout(t.Context(), buildTimeout)
	defer cancel()
	declared := spec.Spec{Clusters: []spec.Cluster{
		{Name: "a", Nodes: 1, IPFamilies: []spec.Family{spec.IPv6, spec.IPv4}, LoadBalancer: spec.NameBalancer},
		{
			Name: "b", Nodes: 2, PodCIDR: netip.MustParsePrefix("10.245.0.0/16"), ServiceCIDR: netip.MustParsePrefix("10.97.0.0/16"),
			IPFamilies: []spec.Family{spec.IPv4, spec.IPv6}, LoadBalancer: spec.AddressBalancer, LimitCriticalPods: true,
		},
	}}.Complete()
	l := startLab(ctx, t, "e2e-disjoint", declared)
	c := newLiqoctl(ctx, t, l)
	c.narrow(ctx, t, declared, 1460)
	for _, cluster := range declared.Clusters {
		for _, node := range nodesOf(ctx, t, l, cluster.Name) {
			inNode(ctx, t, c, node, "sysctl -qw net.ipv4.conf.all.rp_filter=1; "+noFirewall)
		}
	}
	r := newRemnants(ctx, t, c)
	long(t, "an image that cannot be pulled leaves all as it was", func(t *testing.T) { r.testImage(ctx, t) })
	t.Run("a first connect is planned", func(t *testing.T) { testPlans(ctx, t, c, "fresh") })
	conn := c.connect(ctx, t, "--gw-server-service-type", "LoadBalancer")
	c.wantEndpoint(ctx, t, "a", spec.BalancerAddress(spec.BalancerPool(1), 1))
	long(t, "what stands is planned", func(t *testing.T) { testPlans(ctx, t, c, "connected") })
	t.Run("the MTU fits the narrowest hop", func(t *testing.T) { testMTU(ctx, t, c, conn, 1460-80) })
	for _, s := range sides(conn) {
		for _, m := range s.self.Addresses {
			if m.Kind == "pods" && m.Original != m.ReachedAt {
				t.Errorf("%s sees pods of %s, %s, as %s without need", s.cluster, s.other, m.Original, m.ReachedAt)
			}
		}
	}
	testEveryPod(ctx, t, l, conn)
	t.Run("nodes reach pods", func(t *testing.T) { testNodesReachPods(ctx, t, l, conn) })
	t.Run("families", func(t *testing.T) { testFamilies(ctx, t, l) })
	long(t, "memory limits", func(t *testing.T) { testMemoryLimits(ctx, t, c) })
	long(t, "the tunnel is measured", func(t *testing.T) { testPerformance(ctx, t, c) })
	t.Run("the peering is a tree", func(t *testing.T) { testTree(ctx, t, c) })
	t.Run("disconnect and reset leave all as it was", func(t *testing.T) { r.testDisconnect(ctx, t) })
	t.Run("manifests that kubectl applies are a peering", func(t *testing.T) { testEveryPod(ctx, t, l, testRendered(ctx, t, c)) })
	t.Run("firewalls on nodes", func(t *testing.T) { testFirewall(ctx, t, c) })
	long(t, "ways in", func(t *testing.T) { testWaysIn(ctx, t, c, declared) })
	c.atOnce(ctx, t, "reset", "a", "b")
	t.Run("all is as it was", func(t *testing.T) {
		for cluster := range r.before {
			r.awaitNone(ctx, t, cluster)
		}
	})
	long(t, "a namespace is deleted with kubectl", func(t *testing.T) {
		c.connect(ctx, t)
		r.testDeletedNamespace(ctx, t)
	})
	long(t, "the only node is lost", func(t *testing.T) { r.testLostNode(ctx, t) })
	long(t, "a peer vanishes", func(t *testing.T) { r.testVanishedPeer(ctx, t) })
}
