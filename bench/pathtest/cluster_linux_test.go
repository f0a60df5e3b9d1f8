// Package pathtest runs the helpers as processes in the nodes and gateways of two clusters made of network namespaces,
// and sends packets through them. The API servers are fakes, and the test writes the records of the CLI.
package pathtest

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"liqonet.io/liqonet/bench/path"
	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/apiserver"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/process"
	"liqonet.io/liqonet/internal/testbed/require"
)

// Both clusters have the same CIDRs, and each has the other's pods remapped.
var (
	podCIDR      = netip.MustParsePrefix("10.244.0.0/16")
	externalCIDR = netip.MustParsePrefix("10.70.0.0/16")
	peerExternal = netip.MustParsePrefix("10.71.0.0/16")
	internalCIDR = netip.MustParsePrefix("10.80.0.0/16")
)

const (
	nodesPerCluster = 2
	serverPort      = 30000 // of the server's first tunnel, at its nodes
	listenPort      = 51840
	linkMTU         = 1500
	pathMTU         = linkMTU - 80 // IPv6 40 + UDP 8 + WireGuard 32
)

// testCluster is two nodes with a pod each, and the pod of a gateway on the first one. Tests add others.
type testCluster struct {
	t        *testing.T
	number   byte
	name     string
	remapped netip.Prefix // its pod CIDR at the peer
	serves   bool         // it is the WireGuard server
	// endpoint is the server's endpoint in the client's record; the zero value: at one of the server's nodes.
	endpoint netip.AddrPort
	// otherEndpoints are the alternatives in the client's record.
	otherEndpoints []string
	api            *fake.Clientset
	socket         string
	// sockets are those of the API server for nodes, and gateways on them; "": socket.
	sockets [nodesPerCluster]string

	nodes, pods [nodesPerCluster]netns.Namespace
	// replaced counts how often a node was replaced by another one with its pod CIDR.
	replaced [nodesPerCluster]int
	gateways []*testGateway
	// elsewhere gives each of several gateways an endpoint at a node that is not its own.
	elsewhere bool
	mode      records.GatewayMode

	nodeHelpers [nodesPerCluster]*process.Process
}

func (c *testCluster) node(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{172, 31, c.number, byte(11 + i + nodesPerCluster*c.replaced[i])})
}
func (c *testCluster) nodeName(i int) string {
	return fmt.Sprintf("%s-%d", c.name, 1+i+nodesPerCluster*c.replaced[i])
}
func (c *testCluster) podsOf(i int) netip.Prefix { return netip.PrefixFrom(inPods(i, 0), 24) }
func inPods(node int, number byte) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 244, byte(node + 1), number})
}
func (c *testCluster) remappedPod(node int) netip.Addr {
	a := c.remapped.Addr().As4()
	a[2], a[3] = byte(node+1), podNumber
	return netip.AddrFrom4(a)
}

// Host numbers of addresses in a node's pod range.
const (
	bridgeNumber  = 1
	podNumber     = 5
	gatewayNumber = 9
)

// outside is the underlay's own address, the gateway of default routes.
var outside = netip.MustParseAddr("172.31.255.254")

// newCluster creates the namespaces of a cluster, on a switch in the underlay, and its API server.
func newCluster(t *testing.T, underlay netns.Namespace, number byte, seen string) *testCluster {
	c := &testCluster{t: t, number: number, name: string('a' + number - 1), remapped: netip.MustParsePrefix(seen), serves: number == 1}
	var objects []runtime.Object
	for i := range c.nodes {
		c.addNode(underlay, i)
		objects = append(objects, c.nodeObject(i))
	}
	c.api = fake.NewClientset(objects...)
	c.addGateway()
	c.socket, _ = c.serveAPI()
	return c
}

func (c *testCluster) nodeObject(i int) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: c.nodeName(i), UID: types.UID("uid-" + c.nodeName(i))},
		Spec:       corev1.NodeSpec{PodCIDRs: []string{c.podsOf(i).String()}},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: c.node(i).String()}}},
	}
}

// serveAPI serves the objects of a cluster at a socket, until the test ends or the returned function is called.
func (c *testCluster) serveAPI() (socket string, cut func()) {
	socket = filepath.Join(c.t.TempDir(), "api")
	return socket, c.serveAPIAt(socket)
}

// serveAPIAt is serveAPI for a socket. After cut has returned, the socket can be used again.
func (c *testCluster) serveAPIAt(socket string) (cut func()) {
	stop := apiserver.Start(c.api, socket)
	cut = sync.OnceFunc(func() {
		assert.NoError(c.t, stop())
	})
	c.t.Cleanup(cut) // after the helpers have ended
	return cut
}

// ip runs ip(8) in a namespace with each line of arguments.
func ip(ns netns.Namespace, lines ...string) {
	for _, line := range lines {
		ns.IP(line)
	}
}

// addNode creates a node as a simple CNI configures it, and a pod on it.
func (c *testCluster) addNode(underlay netns.Namespace, i int) {
	n := netns.New(c.t)
	c.nodes[i] = n
	port := fmt.Sprintf("%s%d", c.name, i+nodesPerCluster*c.replaced[i])
	ip(underlay,
		fmt.Sprintf("link add %s type veth peer name eth0 netns %s", port, n.Path()),
		fmt.Sprintf("link set %s master br0 up", port),
	)
	ip(n,
		"link set eth0 up",
		fmt.Sprintf("addr add %s/16 dev eth0", c.node(i)),
		fmt.Sprintf("route add default via %s", outside),
		"link add cni0 type bridge",
		"link set cni0 up",
		fmt.Sprintf("addr add %s/24 dev cni0", inPods(i, bridgeNumber)),
		fmt.Sprintf("route add %s via %s", c.podsOf(1-i), c.node(1-i)),
	)
	n.Run("sysctl", "-qw", "net.ipv4.ip_forward=1")
	n.Run("nft", fmt.Sprintf("table ip cni { chain post { type nat hook postrouting priority 90; "+
		"ip saddr %s ip daddr != %s masquerade; }; }", podCIDR, podCIDR))
	c.pods[i] = c.addPod(i, podNumber)
}

func (c *testCluster) addPod(node int, number byte) netns.Namespace {
	p, n := netns.New(c.t), c.nodes[node]
	port := fmt.Sprintf("pod%d", number)
	ip(n,
		fmt.Sprintf("link add %s type veth peer name eth0 netns %s", port, p.Path()),
		fmt.Sprintf("link set %s master cni0 up", port),
		fmt.Sprintf("link set %s type bridge_slave hairpin on", port),
	)
	ip(p,
		"link set eth0 up",
		fmt.Sprintf("addr add %s/24 dev eth0", inPods(node, number)),
		fmt.Sprintf("route add default via %s", inPods(node, bridgeNumber)),
	)
	return p
}

// write writes a record like the CLI; nil creates the empty object that a gateway fills.
func (c *testCluster) write(name string, record records.Document) {
	c.t.Helper()
	cm, err := path.ConfigMap(name, record)
	require.NoError(c.t, err)
	c.create(cm)
}

// create creates an object.
func (c *testCluster) create(o runtime.Object) {
	c.t.Helper()
	require.NoError(c.t, c.api.Tracker().Add(o))
}

// get returns an object with a record.
func (c *testCluster) get(name string) *corev1.ConfigMap {
	c.t.Helper()
	cm, err := c.api.CoreV1().ConfigMaps(records.DefaultNamespace).Get(c.t.Context(), name, metav1.GetOptions{})
	require.NoError(c.t, err)
	return cm
}

// put replaces an object with a record.
func (c *testCluster) put(cm *corev1.ConfigMap) {
	c.t.Helper()
	_, err := c.api.CoreV1().ConfigMaps(cm.Namespace).Update(c.t.Context(), cm, metav1.UpdateOptions{})
	require.NoError(c.t, err)
}

// edit changes the text of a record, and returns the object as it was.
func (c *testCluster) edit(name string, change func(string) string) *corev1.ConfigMap {
	c.t.Helper()
	old := c.get(name)
	changed := old.DeepCopy()
	changed.Data[records.DataKey] = change(old.Data[records.DataKey])
	c.put(changed)
	return old
}

// damage makes a record unreadable, and returns the object as it was.
func (c *testCluster) damage(name string) *corev1.ConfigMap {
	c.t.Helper()
	return c.edit(name, func(string) string { return "x" })
}

// rewrite replaces the record of the peering.
func (c *testCluster) rewrite(p records.Peering) {
	c.t.Helper()
	text, err := records.Encode(p)
	require.NoError(c.t, err)
	c.edit(records.PeeringName(p.Name), func(string) string { return text })
}

// overlayPorts are those of the first and of the second cluster: each has its own.
var overlayPorts = [2]uint16{6091, 6191}

// connect writes the records as the CLI does, and starts the helpers: those of nodes, then the gateway's.
func (c *testCluster) connect(k path.Kinds, peer *testCluster) {
	c.writeFabric(k)
	c.write(records.PeeringName("peer"), c.peering(k, peer))
	for _, g := range c.gateways {
		c.writeObjects(g)
		c.balance(g)
	}
	c.startNodes()
	for _, g := range c.gateways {
		c.start(g)
	}
}

func (c *testCluster) writeFabric(k path.Kinds) {
	c.t.Helper()
	c.write(records.FabricName, records.Fabric{
		Version: records.SchemaVersion, ClusterID: "id-" + c.name, Name: c.name, PodCIDRs: []netip.Prefix{podCIDR},
		ExternalCIDR: externalCIDR, InternalCIDR: internalCIDR,
		Overlay: records.Overlay{Kind: k.Overlay, Port: overlayPorts[c.number-1]}, MTU: linkMTU,
	})
}

// startNodes starts a helper on each node.
func (c *testCluster) startNodes() {
	for i := range c.nodes {
		c.startNode(i)
	}
}

func (c *testCluster) startNode(i int) {
	c.nodeHelpers[i] = process.Start(c.t, c.nodes[i], "node "+c.nodeName(i), c.nodeJob(i))
}

func (c *testCluster) nodeJob(i int) job {
	return job{Helper: path.Helper{Socket: cmp.Or(c.sockets[i], c.socket), Node: &helper.Node{Name: c.nodeName(i)}}}
}

// status returns the report of the first gateway.
func (c *testCluster) status() (records.Status, error) { return c.statusOf(c.gateways[0]) }

// statusOf returns the report of a gateway.
func (c *testCluster) statusOf(g *testGateway) (records.Status, error) {
	return records.Decode[records.Status](c.get(g.id().StatusName()).Data[records.DataKey])
}

// renewStatus has a gateway write its report, which it does immediately if the report is damaged.
func (c *testCluster) renewStatus(g *testGateway) { c.damage(g.id().StatusName()) }

// reports returns the reports of the nodes, by name.
func (c *testCluster) reports() (map[string]records.Node, error) {
	leases, err := c.api.CoordinationV1().Leases(records.DefaultNamespace).List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	reports := map[string]records.Node{}
	for _, l := range leases.Items {
		n, err := records.Decode[records.Node](l.Annotations[records.AnnotationNode])
		if err != nil {
			return nil, fmt.Errorf("report in Lease %s: %w", l.Name, err)
		}
		reports[n.Name] = n
	}
	if len(reports) < nodesPerCluster {
		return nil, errors.New("some nodes have not reported")
	}
	return reports, nil
}
