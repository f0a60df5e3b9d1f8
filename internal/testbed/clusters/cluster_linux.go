// Package clusters builds clusters from network namespaces, with fake API servers and with helpers as processes, and
// connects them with the records of the CLI.
package clusters

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/apiserver"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/process"
)

// All clusters have the same CIDRs, and each has the pods of others remapped.
var (
	PodCIDR      = netip.MustParsePrefix("10.244.0.0/16")
	ExternalCIDR = netip.MustParsePrefix("10.70.0.0/16")
	PeerExternal = netip.MustParsePrefix("10.71.0.0/16")
	InternalCIDR = netip.MustParsePrefix("10.80.0.0/16")
	// Outside is the address of an underlay, the gateway of default routes.
	Outside = netip.MustParseAddr("172.31.255.254")
	// OverlayPorts are those of the first and of the second cluster: each has its own.
	OverlayPorts = [2]uint16{6091, 6191}
)

// Ports, MTUs in bytes, and host numbers of addresses in a node's pod range.
const (
	ServerPort    = 30000 // of the server's first tunnel, at its nodes
	WebSocketPort = 30443 // of the server's first gateway, at its nodes
	ListenPort    = 51840
	LinkMTU       = 1500
	PathMTU       = LinkMTU - 80 // IPv6 40 + UDP 8 + WireGuard 32
	PodNumber     = 5
	GatewayNumber = 9
)

// Priorities of the chains in which network plugins masquerade.
const (
	EarlyMasquerade  = 90  // kindnet
	CommonMasquerade = 100 // flannel, Calico and all others that use iptables
)

// Kinds are the implementations that a peering uses.
type Kinds struct {
	Overlay   records.OverlayKind
	WireGuard records.Implementation // or Unencrypted
	// Transport gives the server's gateways an address for WebSocket, unless it is UDP or "".
	Transport records.Transport
}

// TestedKinds are those that the kernel under test supports, by variables of the environment.
func TestedKinds() (all []Kinds) {
	words := func(variable, otherwise string) []string {
		return strings.Fields(cmp.Or(os.Getenv(variable), otherwise))
	}
	for _, overlay := range words("LIQONET_TEST_OVERLAYS", string(records.VXLAN)) {
		for _, wireGuard := range words("LIQONET_TEST_WIREGUARD", string(records.Userspace)) {
			for _, transport := range words("LIQONET_TEST_TRANSPORT", string(records.UDP)) {
				all = append(all, Kinds{records.OverlayKind(overlay), records.Implementation(wireGuard), records.Transport(transport)})
			}
		}
	}
	return all
}

// Cluster is some nodes with a pod each, and the pods of gateways.
type Cluster struct {
	Kinds    Kinds
	Number   int // 1: the WireGuard server, at first
	Name     string
	Remapped netip.Prefix // its pod CIDR at the peer
	Serves   bool         // it is the WireGuard server
	// Underlay has a switch br0 that joins the nodes; the zero value: they have no links to others yet.
	Underlay netns.Namespace
	// Endpoint is the server's endpoint in the client's record; the zero value: at one of the server's nodes.
	Endpoint netip.AddrPort
	// OtherEndpoints are the alternatives in the client's record.
	OtherEndpoints []string
	// Elsewhere gives each of several gateways an endpoint at a node that is not its own.
	Elsewhere bool
	Mode      records.GatewayMode

	API    *fake.Clientset
	Socket string
	// Sockets are those of the API server for each node, and gateways on it; "": Socket.
	Sockets []string

	Nodes, Pods []netns.Namespace
	NodeHelpers []*process.Process
	// Replaced counts how often a node was replaced by another one with its pod CIDR.
	Replaced []int
	Gateways []*Gateway

	t testing.TB
}

// New makes a cluster with a gateway, whose helpers do not run yet.
func New(t testing.TB, number, nodes int, remapped string, underlay netns.Namespace, kinds Kinds) *Cluster {
	t.Helper()
	c := &Cluster{
		Kinds: kinds, Number: number, Name: string(rune('a' + number - 1)), Remapped: netip.MustParsePrefix(remapped), Serves: number == 1,
		Underlay: underlay, Nodes: make([]netns.Namespace, nodes), Pods: make([]netns.Namespace, nodes), NodeHelpers: make([]*process.Process, nodes),
		Sockets: make([]string, nodes), Replaced: make([]int, nodes), t: t,
	}
	var objects []runtime.Object
	for i := range c.Nodes {
		c.AddNode(i)
		objects = append(objects, c.NodeObject(i))
	}
	c.API = fake.NewClientset(objects...)
	c.AddGateway()
	c.Socket, _ = c.ServeAPI()
	return c
}

// NodeAddress returns the address of a node.
func (c *Cluster) NodeAddress(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{172, 31, byte(c.Number), byte(11 + c.ordinal(i) - 1)})
}

// NodeName returns the name of a node.
func (c *Cluster) NodeName(i int) string { return fmt.Sprintf("%s-%d", c.Name, c.ordinal(i)) }

// ordinal counts nodes from 1, replacements included.
func (c *Cluster) ordinal(i int) int { return 1 + i + len(c.Nodes)*c.Replaced[i] }

// PodsOf returns the podCIDR of a node.
func (c *Cluster) PodsOf(i int) netip.Prefix { return netip.PrefixFrom(InPods(i, 0), 24) }

// InPods returns an address of a node's podCIDR.
func InPods(node int, number byte) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 244, byte(node + 1), number})
}

// RemappedPod returns the address of a node's pod at the peer.
func (c *Cluster) RemappedPod(node int) netip.Addr {
	a := c.Remapped.Addr().As4()
	a[2], a[3] = byte(node+1), PodNumber
	return netip.AddrFrom4(a)
}

// AddNode creates a node as a simple CNI configures it, and a pod on it.
func (c *Cluster) AddNode(i int) {
	n := netns.NewNode(c.t, c.PodsOf(i), 0)
	c.Nodes[i] = n.Namespace
	if c.Underlay != (netns.Namespace{}) {
		n.Uplink(c.Underlay, fmt.Sprintf("%s%d", c.Name, c.ordinal(i)), "br0", netip.PrefixFrom(c.NodeAddress(i), 16), Outside)
	}
	for j := range c.Nodes {
		if j != i {
			n.IP(fmt.Sprintf("route add %s via %s", c.PodsOf(j), c.NodeAddress(j)))
		}
	}
	n.Masquerade(EarlyMasquerade, []netip.Prefix{PodCIDR}, []netip.Prefix{PodCIDR})
	c.Pods[i] = c.AddPod(i, PodNumber)
}

// Node returns a node with its bridge.
func (c *Cluster) Node(i int) netns.Node { return netns.Node{Namespace: c.Nodes[i], Pods: c.PodsOf(i)} }

// AddPod creates a pod on a node.
func (c *Cluster) AddPod(node int, number byte) netns.Namespace {
	return c.Node(node).Pod(fmt.Sprintf("pod%d", number), InPods(node, number))
}

// NodeObject returns the Node of a node.
func (c *Cluster) NodeObject(i int) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: c.NodeName(i), UID: types.UID("uid-" + c.NodeName(i))},
		Spec:       corev1.NodeSpec{PodCIDRs: []string{c.PodsOf(i).String()}},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: c.NodeAddress(i).String()}}},
	}
}

// PodObject returns the Pod of a pod that runs.
func PodObject(namespace, name, node string, address netip.Addr, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address.String(), PodIPs: []corev1.PodIP{{IP: address.String()}}},
	}
}

// ServeAPI serves the objects of the cluster at another socket, until the test ends or cut is called.
func (c *Cluster) ServeAPI() (socket string, cut func()) {
	socket = filepath.Join(c.t.TempDir(), "api")
	return socket, c.ServeAPIAt(socket)
}

// ServeAPIAt is ServeAPI for a socket. After cut has returned, the socket can be used again.
func (c *Cluster) ServeAPIAt(socket string) (cut func()) {
	stop := apiserver.Start(c.API, socket)
	cut = sync.OnceFunc(func() {
		assert.NoError(c.t, stop())
	})
	c.t.Cleanup(cut) // after the helpers have ended
	return cut
}
