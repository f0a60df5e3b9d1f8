//go:build linux

package helper

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// testCluster is one of two clusters with the same ranges: a node with a pod, and the gateway's pod on that node.
type testCluster struct {
	role                      records.Role
	number                    byte // 1: the server, 2: the client
	node, pod, gateway        netns.Namespace
	key                       wgtypes.Key
	nodeHelper, gatewayHelper *helperProcess
	testAPI
}

// Addresses in each cluster. The peer's pods are seen as 10.11.0.0/16, its nodes as 10.71.0.0/16.
var (
	podAddress     = netip.MustParseAddr("10.244.1.5")
	gatewayAddress = netip.MustParseAddr("10.244.1.9")
	peersPod       = netip.MustParseAddr("10.11.1.5")
)

const nodePort = 30000 // of the server's gateway

func (c *testCluster) nodeAddress() string { return fmt.Sprintf("172.31.0.%d", c.number) }

// twoClusters starts the helpers of two clusters and waits until packets cross.
func twoClusters(t *testing.T) (server, client *testCluster) {
	t.Helper()
	underlay := netns.New(t)
	underlay.IP("link add br0 type bridge")
	underlay.IP("link set br0 up")
	server = &testCluster{testAPI: newTestAPI(t), role: records.Server, number: 1}
	client = &testCluster{testAPI: newTestAPI(t), role: records.Client, number: 2}
	preshared, err := wgtypes.GenerateKey()
	require.NoError(t, err)
	for _, c := range []*testCluster{server, client} {
		if c.key, err = wgtypes.GeneratePrivateKey(); err != nil {
			t.Fatal(err)
		}
		c.build(underlay)
	}
	server.node.Run("nft", fmt.Sprintf("add table ip services; add chain ip services nodeports { type nat hook prerouting priority -100; };"+
		"add rule ip services nodeports udp dport %d dnat to %s:51840", nodePort, gatewayAddress))
	server.run(client.key.PublicKey(), preshared)
	client.run(server.key.PublicKey(), preshared)
	for _, c := range []*testCluster{server, client} {
		wait.Until(t, string(c.role)+" proves its path", patience, func() bool {
			s, state := c.status()
			return state == string(health.Healthy) && !s.LastHandshake.IsZero() && !s.LastEcho.IsZero() && len(s.Nodes) == 1 && !s.Nodes[0].LastProof.IsZero()
		})
	}
	return server, client
}

// build makes the namespaces and what a simple CNI makes.
func (c *testCluster) build(underlay netns.Namespace) {
	c.node = netns.New(c.t)
	port := fmt.Sprint("node", c.number)
	c.node.IP("link add eth0 type veth peer name " + port + " netns " + underlay.Path())
	underlay.IP("link set " + port + " master br0 up")
	c.node.IP("link set eth0 up")
	c.node.IP("addr add " + c.nodeAddress() + "/24 dev eth0")
	c.node.IP("route add default via 172.31.0.254")
	c.node.IP("link add cni0 type bridge")
	c.node.IP("link set cni0 up")
	c.node.IP("addr add 10.244.1.1/24 dev cni0")
	c.node.Run("sysctl", "-qw", "net.ipv4.ip_forward=1")
	c.node.Run("nft", "add table ip cni; add chain ip cni post { type nat hook postrouting priority 90; };"+
		"add rule ip cni post ip saddr 10.244.0.0/16 ip daddr != 10.244.0.0/16 masquerade")
	c.pod, c.gateway = c.attach("pod", podAddress), c.attach("gateway", gatewayAddress)
}

// attach makes a pod.
func (c *testCluster) attach(port string, a netip.Addr) netns.Namespace {
	pod := netns.New(c.t)
	pod.IP("link add eth0 type veth peer name " + port + " netns " + c.node.Path())
	c.node.IP("link set " + port + " master cni0 up")
	pod.IP("link set eth0 up")
	pod.IP("addr add " + a.String() + "/24 dev eth0")
	pod.IP("route add default via 10.244.1.1")
	return pod
}

// run writes the records that connect would write, and starts the helpers.
func (c *testCluster) run(peer, preshared wgtypes.Key) {
	c.t.Cleanup(func() { // when both have ended
		for _, p := range []*helperProcess{c.nodeHelper, c.gatewayHelper} {
			checkLog(c.t, p.Log(), c.key, preshared)
		}
	})
	keys := c.t.TempDir()
	for name, key := range map[string]wgtypes.Key{records.PrivateKeyKey: c.key, records.PresharedKeyKey: preshared} {
		require.NoError(c.t, os.WriteFile(filepath.Join(keys, name), []byte(key.String()), 0o600))
	}
	fabric, peering := testFabric(), testPeering()
	fabric.Overlay.Kind = records.OverlayKind(firstOf("LIQONET_TEST_OVERLAYS", string(records.VXLAN)))
	t := &peering.Gateways[0].Tunnels[0]
	peering.Role, t.PublicKey = c.role, peer.String()
	peering.Implementation = records.Implementation(firstOf("LIQONET_TEST_WIREGUARD", string(records.Userspace)))
	t.Endpoints = []string{fmt.Sprintf("172.31.0.1:%d", nodePort)}
	if c.role == records.Server {
		t.Endpoints = nil
		t.Address, t.PeerAddress = netip.MustParsePrefix("169.254.18.1/30"), netip.MustParseAddr("169.254.18.2")
	}
	node := testNode("n1")
	node.Spec.PodCIDRs = []string{"10.244.1.0/24"}
	empty := configMap(c.t, firstGateway("b").StatusName(), records.ComponentStatus, "b", testStatus())
	location := gatewayMap(c.t, "b", testGateway())
	empty.Data, location.Data = nil, nil
	c.add(node, gatewayPod("b", testGateway()), empty, location, fabricMap(c.t, fabric), peeringMap(c.t, peering))
	c.nodeHelper = c.start(c.node, job{Node: &Node{Name: "n1"}})
	c.gatewayHelper = c.start(c.gateway, job{Gateway: &Gateway{
		ID: firstGateway("b"), Pod: "gateway-b-x", PodIP: gatewayAddress, Node: "n1", Keys: keys,
	}})
}

// checkLog: each line is an object that tells which helper it is of, and none has a key in it.
func checkLog(t *testing.T, text string, secrets ...wgtypes.Key) {
	t.Helper()
	for _, key := range secrets {
		for _, form := range []string{key.String(), hex.EncodeToString(key[:])} {
			if strings.Contains(text, form) {
				t.Error("a log contains a key")
			}
		}
	}
	for line := range strings.Lines(text) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil || fields["msg"] == "" || fields["node"] == nil && fields["peering"] == nil {
			t.Errorf("line of a log: %s (%v)", line, err)
		}
	}
}

// firstOf returns the first word of an environment variable.
func firstOf(name, otherwise string) string {
	word, _, _ := strings.Cut(os.Getenv(name), " ")
	return cmp.Or(word, otherwise)
}

// crosses sends packets between pods, both ways.
func crosses(t *testing.T, clusters ...*testCluster) {
	t.Helper()
	for _, c := range clusters {
		c.pod.Run("ping", "-c", "1", "-w", "20", "-M", "do", "-s", fmt.Sprint(testPeering().MTU-28), peersPod.String())
	}
}
