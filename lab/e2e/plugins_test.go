package e2e

import (
	"context"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/require"
	"liqonet.io/liqonet/lab/spec"
)

// pluginsVariable, when set, has TestPlugins go through every mode of every network plugin: Cilium takes minutes to
// compile.
const pluginsVariable = "LIQONET_TEST_PLUGINS"

// pluginPods are the pods that a network plugin has on every node.
var pluginPods = map[spec.NetworkPlugin]struct{ namespace, daemonSet, label string }{
	spec.PluginFlannel: {"kube-flannel", "kube-flannel-ds", "app=flannel"},
	spec.PluginCilium:  {"kube-system", "cilium", "k8s-app=cilium"},
}

// pluginPair are two clusters with network plugins, a and b.
type pluginPair struct {
	name string // without commas, which kubectl takes as separators in paths
	a, b spec.Cluster
	// eBPF is set if one of them routes by eBPF: fragments of pods that are larger than liqonet's link are lost.
	// See docs/network-plugins.md.
	eBPF bool
}

// declared is the declaration of a lab of the two.
func (p pluginPair) declared() spec.Spec {
	p.a.Name, p.b.Name = "a", "b"
	return spec.Spec{Clusters: []spec.Cluster{p.a, p.b}}.Complete()
}

// pluginPairs are tried by TestPlugins, the first always.
func pluginPairs() []pluginPair {
	flannel := spec.Cluster{NetworkPlugin: spec.PluginFlannel} // VXLAN, iptables
	cilium := spec.Cluster{NetworkPlugin: spec.PluginCilium}   // VXLAN, beside kube-proxy
	direct, native := flannel, cilium
	direct.KubeProxy = spec.ProxyIptables
	direct.FlannelNetConf = map[string]any{"Backend": map[string]any{"Type": "host-gw"}, "EnableNFTables": true}
	native.KubeProxy = spec.ProxyIptables
	native.CiliumValues = map[string]any{
		"routingMode": "native", "autoDirectNodeRoutes": true, "ipv4NativeRoutingCIDR": "10.244.0.0/16",
	}
	legacy, eBPF := cilium, cilium
	legacy.KubeProxy, eBPF.KubeProxy = spec.ProxyNone, spec.ProxyNone
	legacy.CiliumValues = map[string]any{"bpf": map[string]any{"hostLegacyRouting": true}}
	eBPF.CiliumValues = map[string]any{"bpf": map[string]any{"hostLegacyRouting": false, "masquerade": true}}
	// Cilium's default address management.
	pool := spec.Cluster{NetworkPlugin: spec.PluginCilium, PodCIDR: netip.MustParsePrefix("10.32.0.0/16")}
	pool.CiliumValues = map[string]any{"ipam": map[string]any{"mode": "cluster-pool", "operator": map[string]any{
		"clusterPoolIPv4PodCIDRList": []any{pool.PodCIDR.String()}, "clusterPoolIPv4MaskSize": 24,
	}}}
	return []pluginPair{
		{name: "flannel VXLAN iptables with flannel host-gw nftables", a: flannel, b: direct},
		{name: "Cilium VXLAN with Cilium VXLAN", a: cilium, b: cilium},
		{name: "Cilium cluster-pool with Cilium cluster-pool", a: pool, b: pool},
		{name: "Cilium native with flannel VXLAN", a: native, b: flannel},
		{name: "Cilium VXLAN with the lab", a: cilium, b: spec.Cluster{}},
		{name: "Cilium without kube-proxy with flannel VXLAN", a: legacy, b: flannel},
		{name: "Cilium eBPF routing with the lab", a: eBPF, b: spec.Cluster{}, eBPF: true},
	}
}

// TestPlugins connects clusters that run real network plugins.
func TestPlugins(t *testing.T) {
	inTurn(t, 8)
	pairs := pluginPairs()
	everything := os.Getenv(pluginsVariable) != ""
	if !everything {
		pairs = pairs[:1]
	}
	for _, p := range pairs {
		if everything {
			p.a.NetworkPlugin, p.b.NetworkPlugin = earlierRelease(p.a.NetworkPlugin), earlierRelease(p.b.NetworkPlugin)
		}
		t.Run(p.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), buildTimeout)
			defer cancel()
			testPlugins(ctx, t, p)
		})
	}
}

// testPlugins upgrades the plugins of connected clusters to their current release if they run an earlier one, sends
// packets of every kind between them, replaces the plugins' pods, and disconnects.
func testPlugins(ctx context.Context, t *testing.T, p pluginPair) {
	t.Helper()
	declared := p.declared()
	l := startLab(ctx, t, "e2e-plugins", declared)
	c := newLiqoctl(ctx, t, l)
	before := nodesBefore(ctx, t, l, declared)
	everyPod := testEveryPod
	if p.eBPF {
		everyPod = testEveryPodWhole
	}
	conn := c.connect(ctx, t)
	t.Logf("MTU %d", conn.MTU)
	serveOutside(ctx, t, l, spec.OutsideHosts()[0])
	if upgradable(declared) {
		t.Run("plugins are upgraded", func(t *testing.T) {
			testUpgradedPlugins(ctx, t, l, declared, conn)
			before.testMTUs(ctx, t, l)
		})
		t.Run("memory and processor time", func(t *testing.T) { testUsage(ctx, t, l, conn) })
		t.Run("without links nothing leaves a node", func(t *testing.T) { testFailsClosed(ctx, t, l, declared, conn) })
	}
	t.Run("every pod reaches every pod", func(t *testing.T) { everyPod(ctx, t, l, conn) })
	t.Run("10 MB of TCP", func(t *testing.T) { testBulk(ctx, t, l, conn) })
	t.Run("a byte more than the MTU", func(t *testing.T) { testTooLong(ctx, t, l, conn) })
	t.Run("a closed port", func(t *testing.T) { testClosedPort(ctx, t, l, conn) })
	t.Run("nodes reach pods", func(t *testing.T) { testNodesReachPods(ctx, t, l, conn) })
	for i, s := range sides(conn) {
		// Cilium sends what asks a NodePort from outside past the node's postrouting, with a source that the gateway
		// refuses. See docs/network-plugins.md.
		outside := declared.Clusters[i].KubeProxy != spec.ProxyNone
		t.Run("a Service in "+s.cluster, func(t *testing.T) { testFarService(ctx, t, l, s, askers{outside: outside, podByNode: true}) })
		t.Run("a host outside exposed by "+s.cluster, func(t *testing.T) { testExposedHost(ctx, t, c, s, declared.Clusters[i].NodeNetwork) })
		if declared.Clusters[i].NetworkPlugin.Current() == spec.PluginCilium {
			t.Run("network policies in "+s.cluster, func(t *testing.T) { testPolicies(ctx, t, l, s) })
		}
	}
	t.Run("nodes keep their MTUs", func(t *testing.T) { before.testMTUs(ctx, t, l) })
	t.Run("status is healthy", func(t *testing.T) { testStatus(ctx, t, c) })
	t.Run("plugins are restarted", func(t *testing.T) {
		restartPlugins(ctx, t, l, declared)
		everyPod(ctx, t, l, conn)
		before.testMTUs(ctx, t, l)
	})
	t.Run("disconnect and reset leave nothing", func(t *testing.T) {
		c.must(ctx, t, "network", "disconnect", "--context", "a", "--remote-context", "b")
		for _, cluster := range declared.Clusters {
			c.must(ctx, t, "network", "reset", "--context", cluster.Name)
		}
		before.testNodes(ctx, t, l)
	})
}

// testEveryPodWhole has every pod reach every pod of the other cluster with unfragmented packets.
func testEveryPodWhole(ctx context.Context, t *testing.T, l *lab.Lab, conn connection) {
	t.Helper()
	for _, s := range sides(conn) {
		testStyledPods(ctx, t, l, s, conn.fullSize())
	}
}

// restartPlugins deletes the pods of all plugins and waits for the next ones.
func restartPlugins(ctx context.Context, t *testing.T, l *lab.Lab, declared spec.Spec) {
	t.Helper()
	var all sync.WaitGroup // they take half a minute to end
	for _, cluster := range declared.Clusters {
		if p, ok := pluginPods[cluster.NetworkPlugin.Current()]; ok {
			all.Go(func() {
				if _, err := l.Kubectl(ctx, cluster.Name, "-n", p.namespace, "delete", "pod", "-l", p.label); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	awaitPlugins(ctx, t, l, declared)
}

// awaitPlugins waits until the pods of all plugins are ready.
func awaitPlugins(ctx context.Context, t *testing.T, l *lab.Lab, declared spec.Spec) {
	t.Helper()
	for _, cluster := range declared.Clusters {
		if p, ok := pluginPods[cluster.NetworkPlugin.Current()]; ok {
			awaitRollout(ctx, t, l, cluster.Name, p.namespace, p.daemonSet)
		}
	}
}

// mtusOf is the MTU of every link of a node that is not liqonet's, and of every route that has one.
func mtusOf(ctx context.Context, t *testing.T, l *lab.Lab, node string) string {
	t.Helper()
	const script = `ip -o link | grep -vE 'lqn-|veth|lxc' | sed -E 's/^[0-9]+: ([^:]*):.*(mtu [0-9]+).*/\1 \2/'
ip route show table all | grep mtu | grep -vE 'lqn-|veth|lxc' || true`
	out, err := l.NodeExec(ctx, node, "sh", "-c", script)
	require.NoError(t, err)
	return string(out)
}

// testMTUs checks that the MTUs of every node are unchanged.
func (b before) testMTUs(ctx context.Context, t *testing.T, l *lab.Lab) {
	t.Helper()
	for node, want := range b.sizes {
		if !strings.Contains(want, "mtu") {
			t.Fatalf("node %s has no MTU: %q", node, want)
		}
		if got := mtusOf(ctx, t, l, node); got != want {
			t.Errorf("node %s has the MTUs\n%s\nwant\n%s", node, got, want)
		}
	}
}
