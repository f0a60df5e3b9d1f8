package kernel

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/netops"
)

// world is what the clusters of a test have in common: a router between their node networks.
type world struct {
	t      *testing.T
	router namespace
}

// Addresses beyond the router.
var (
	outsideAddress = netip.MustParseAddr("198.51.100.7") // a client that belongs to no cluster
	balancer       = netip.MustParseAddr("192.0.2.10")   // of a service of type LoadBalancer
)

func newWorld(t *testing.T) *world {
	w := &world{t: t, router: newNamespace(t)}
	w.router.Run("sysctl", "-qw", "net.ipv4.ip_forward=1")
	return w
}

// outside makes a host that belongs to no cluster.
func (w *world) outside() namespace {
	host := newNamespace(w.t)
	w.router.Link("outside", host.Namespace, "eth0", 0)
	w.router.IP("addr add 198.51.100.1/24 dev outside")
	host.IP(fmt.Sprintf("addr add %s/24 dev eth0", outsideAddress), "route add default via 198.51.100.1")
	return host
}

// testCluster is two nodes with a pod each, and the namespaces of the gateways' pods on the first node. Its
// routes are those of a simple CNI.
type testCluster struct {
	*world
	name        string
	number      int            // from 1: of its bridge at the router
	pods        []netip.Prefix // pod CIDRs; the nodes take them in turn
	nodeNetwork netip.Prefix   // of 24 bits
	mtu         int            // bytes, of every link
	// masquerades is set if packets of pods have their node's address outside the pod network, also at nodes. Else
	// they have it outside the cluster only.
	masquerades bool
	hidden      bool // behind a translation: others see the router instead of nodes

	nodes    [2]*testNode
	gateways []*testGateway
}

// testNode is a node of a cluster and a pod on it.
type testNode struct {
	namespace
	made   netns.Node
	kernel *Kernel
	config netops.NodeConfig
	pod    namespace
}

// Numbers of addresses: in a node's pod range, and in a node network.
const (
	bridgeNumber = 1
	podNumber    = 5
	routerNumber = 254
)

func (c *testCluster) pod(node int) netip.Addr   { return c.inPods(node, podNumber) }
func (c *testCluster) node(i int) netip.Addr     { return numbered(c.nodeNetwork, 5+i) }
func (c *testCluster) internal(i int) netip.Addr { return numbered(internalCIDR, 1+i) }

// gatewayNumber is that of a gateway's pod: another one in each cluster.
func (c *testCluster) gatewayNumber(peering int) int { return 100 + 10*c.number + peering }

func (c *testCluster) podCIDR(node int) netip.Prefix {
	return netip.PrefixFrom(numbered(c.pods[node%len(c.pods)], (node+1)<<8), 24)
}

func (c *testCluster) inPods(node, number int) netip.Addr { return numbered(c.podCIDR(node), number) }

// numbered returns an address of a range by its distance from the first one.
func numbered(p netip.Prefix, number int) netip.Addr {
	a := p.Masked().Addr().As4()
	a[2], a[3] = a[2]+byte(number>>8), byte(number)
	return netip.AddrFrom4(a)
}

// build makes the cluster's namespaces.
func (c *testCluster) build() {
	bridge := "nodes-" + c.name
	c.router.IP(
		fmt.Sprintf("link add %s type bridge", bridge),
		fmt.Sprintf("link set %s mtu %d up", bridge, c.mtu),
		fmt.Sprintf("addr add %s/24 dev %s", numbered(c.nodeNetwork, routerNumber), bridge),
	)
	if c.hidden {
		c.router.Chain("hide-"+c.name, "post", "nat hook postrouting priority 100",
			fmt.Sprintf("ip saddr %s oifname != %s masquerade", c.nodeNetwork, bridge))
	}
	for i := range c.nodes {
		c.buildNode(i, bridge)
	}
}

func (c *testCluster) buildNode(i int, bridge string) {
	made := netns.NewNode(c.t, c.podCIDR(i), c.mtu)
	n := &testNode{namespace: namespace{made.Namespace, c.t}, made: made}
	c.nodes[i] = n
	n.Run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=1")
	made.Uplink(c.router.Namespace, fmt.Sprintf("%s%d", c.name, i), bridge, netip.PrefixFrom(c.node(i), 24), numbered(c.nodeNetwork, routerNumber))
	n.IP(fmt.Sprintf("route add %s via %s", c.podCIDR(1-i), c.node(1-i)))
	near := slices.Clone(c.pods)
	if !c.masquerades {
		near = append(near, c.nodeNetwork)
	}
	made.Masquerade(90, c.pods, near)
	n.kernel = n.namespace.kernel()
	n.pod = c.attach(i, c.pod(i))
	serve(n.pod, c.pod(i), fmt.Sprintf("%s%d", c.name, i))
}

// attach makes a pod on a node, with an address of the node's own range.
func (c *testCluster) attach(node int, address netip.Addr) namespace {
	return namespace{c.nodes[node].made.Pod(fmt.Sprintf("v%d", address.As4()[3]), address), c.t}
}

// follow brings a node into the state that its configuration asks for.
func (n *testNode) follow() {
	n.t.Helper()
	reach(n.t, n.kernel, netops.NodeState(n.config))
}

// namespace is a network namespace that lives as long as the test.
type namespace struct {
	netns.Namespace
	t *testing.T
}

func newNamespace(t *testing.T) namespace {
	t.Helper()
	return namespace{netns.New(t), t}
}

// kernel returns the namespace's configuration.
func (ns namespace) kernel() *Kernel {
	ns.t.Helper()
	k, err := OpenAt(ns.FD())
	require.NoError(ns.t, err)
	ns.t.Cleanup(func() {
		assert.NoError(ns.t, k.Close())
	})
	return k
}

// newKernel returns a namespace and its configuration.
func newKernel(t *testing.T) (namespace, *Kernel) {
	t.Helper()
	ns := newNamespace(t)
	return ns, ns.kernel()
}

// overlays are the kinds of overlay that the kernel under test has, from LIQONET_TEST_OVERLAYS, for a short test the
// first alone.
func overlays() []netops.LinkKind {
	var kinds []netops.LinkKind
	for _, kind := range strings.Fields(os.Getenv("LIQONET_TEST_OVERLAYS")) {
		kinds = append(kinds, netops.LinkKind(kind))
	}
	switch {
	case kinds == nil:
		return []netops.LinkKind{netops.KindVXLAN}
	case testing.Short():
		return kinds[:1]
	}
	return kinds
}

func observe(t *testing.T, k *Kernel) netops.State {
	t.Helper()
	have, err := k.Observe()
	require.NoError(t, err)
	return have
}

// reach applies what leads to a state and fails unless the kernel is in it afterwards. It returns the plan.
func reach(t *testing.T, k *Kernel, want netops.State) netops.Plan {
	t.Helper()
	have := observe(t, k)
	before := netops.Diff(netops.State{}, have)
	p := netops.Diff(have, want)
	if err := k.Apply(p); err != nil {
		t.Fatalf("apply: %v\nplan:\n%s", err, p)
	}
	have = observe(t, k)
	if rest := netops.Diff(have, want); !rest.Empty() {
		t.Fatalf("from:\n%s\nby the plan:\n%s\nto:\n%s\nthere is still to do:\n%s", before, p, netops.Diff(netops.State{}, have), rest)
	}
	return p
}
