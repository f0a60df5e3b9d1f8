package pathtest

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/bench/path"
	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/process"
	"liqonet.io/liqonet/internal/testbed/require"
)

// testGateway is the pod of a gateway.
type testGateway struct {
	netns.Namespace
	peering string // "": "peer"
	number  int    // from 1
	place   int    // number of the pod among those with the same key, from 0
	node    int    // index of the node on which it runs
	host    byte   // number of its address in the node's pod range; 0: by its number
	key     wgtypes.Key
	keys    string // folder of the keys
	epoch   string // folder of the pod's epoch
	helper  *process.Process
}

func (g *testGateway) id() records.GatewayID {
	return records.GatewayID{Peering: cmp.Or(g.peering, "peer"), Number: g.number}
}
func (g *testGateway) pod() string { return fmt.Sprintf("%s-%d", g.id().Name(), g.place) }
func (g *testGateway) address() netip.Addr {
	return inPods(g.node, cmp.Or(g.host, gatewayNumber+byte(g.number-1)/nodesPerCluster))
}

// addGateway creates the pod of another gateway: the first on the first node, the second on the second.
func (c *testCluster) addGateway() *testGateway {
	c.t.Helper()
	g := &testGateway{number: len(c.gateways) + 1, node: len(c.gateways) % nodesPerCluster, keys: c.t.TempDir()}
	var err error
	g.key, err = wgtypes.GeneratePrivateKey()
	require.NoError(c.t, err)
	require.NoError(c.t, path.WriteKeys(g.keys, g.key, presharedKey))
	c.addGatewayPod(g)
	c.gateways = append(c.gateways, g)
	return g
}

// replaceGatewayPod creates another pod of a gateway, with the same keys, on the other node.
func (c *testCluster) replaceGatewayPod(old *testGateway) *testGateway {
	g := &testGateway{peering: old.peering, number: old.number, place: old.place + 1, node: 1 - old.node, key: old.key, keys: old.keys}
	c.addGatewayPod(g)
	c.gateways[g.number-1] = g
	return g
}

func (c *testCluster) addGatewayPod(g *testGateway) {
	c.t.Helper()
	g.Namespace, g.epoch = c.addPod(g.node, g.address().As4()[3]), c.t.TempDir()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: records.DefaultNamespace, Name: g.pod(), Labels: g.id().Identity(records.ComponentGateway).Labels()},
		Spec:       corev1.PodSpec{NodeName: c.nodeName(g.node)},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: g.address().String()}}},
	}
	c.create(pod)
}

var presharedKey = wgtypes.Key{1, 2, 3}

// peering returns the record of the CLI for the gateways that both clusters have.
func (c *testCluster) peering(k path.Kinds, peer *testCluster) records.Peering {
	p := records.Peering{
		Version: records.SchemaVersion, Name: "peer", Role: records.Server,
		Peer: records.Peer{
			ClusterID: "id-" + peer.name, Name: peer.name,
			PodCIDRs:     []records.Mapping{{Real: podCIDR, Seen: peer.remapped}},
			ExternalCIDR: records.Mapping{Real: externalCIDR, Seen: peerExternal},
		},
		Local: records.Local{
			PodCIDRs:     []records.Mapping{{Real: podCIDR, Seen: c.remapped}},
			ExternalCIDR: records.Mapping{Real: externalCIDR, Seen: peerExternal},
		},
		Implementation: k.WireGuard, MTU: pathMTU, ClampMSS: true, GatewayMode: c.mode,
	}
	if !c.serves {
		p.Role = records.Client
	}
	for _, g := range c.gateways {
		own := records.LocalGateway{OverlayID: uint32(6 + g.number), Address: netip.AddrFrom4([4]byte{10, 80, 128, byte(g.number)})}
		for _, far := range peer.gateways {
			own.Tunnels = append(own.Tunnels, c.tunnel(g, peer, far))
		}
		p.Gateways = append(p.Gateways, own)
	}
	return p
}

// tunnel returns a gateway's end of its tunnel to a gateway of the peer.
func (c *testCluster) tunnel(g *testGateway, peer *testCluster, far *testGateway) records.Tunnel {
	ofServer, ofClient := g, far
	if !c.serves {
		ofServer, ofClient = far, g
	}
	number := 8*(ofServer.number-1) + ofClient.number - 1
	end := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{169, 254, 18, byte(4*number + i)}) }
	t := records.Tunnel{
		PublicKey: far.key.PublicKey().String(), ListenPort: uint16(listenPort + ofClient.number - 1),
		Address: netip.PrefixFrom(end(1), 30), PeerAddress: end(2),
	}
	if c.serves {
		return t
	}
	t.Address, t.PeerAddress = netip.PrefixFrom(end(2), 30), end(1)
	node := 1
	if len(peer.gateways) > 1 {
		node = far.node // each through a different node
	}
	if c.elsewhere {
		node = 1 - node
	}
	t.Endpoints = []string{netip.AddrPortFrom(peer.node(node), uint16(serverPort+number)).String()}
	if c.endpoint.IsValid() {
		t.Endpoints = []string{c.endpoint.String()}
	}
	t.Endpoints = append(t.Endpoints, c.otherEndpoints...)
	return t
}

// writeObjects writes the empty objects that a gateway fills.
func (c *testCluster) writeObjects(g *testGateway) {
	c.t.Helper()
	c.write(g.id().Name(), nil)
	c.write(g.id().StatusName(), nil)
}

// balance forwards the NodePort of a server's gateway.
func (c *testCluster) balance(g *testGateway) { c.balanceBy(g, c.nodes[:]...) }

// balanceBy is balance for some nodes.
func (c *testCluster) balanceBy(g *testGateway, nodes ...netns.Namespace) {
	if !c.serves {
		return
	}
	var to, from strings.Builder
	for client := range records.MaxGateways {
		port := listenPort + client
		fmt.Fprintf(&to, "udp dport %d dnat to %s:%d; ", serverPort+8*(g.number-1)+client, g.address(), port)
		fmt.Fprintf(&from, "ip daddr %s udp dport %d ct status dnat masquerade; ", g.address(), port)
	}
	for _, n := range nodes {
		n.Run("nft", fmt.Sprintf("table ip services { chain pre { type nat hook prerouting priority -100; %s}; "+
			"chain post { type nat hook postrouting priority 100; %s}; }", &to, &from))
	}
}

// start starts the helper of a gateway.
func (c *testCluster) start(g *testGateway) {
	g.helper = process.Start(c.t, g.Namespace, fmt.Sprintf("%s of %s", g.pod(), c.name), job{Helper: path.Helper{
		Socket: cmp.Or(c.sockets[g.node], c.socket),
		Gateway: &helper.Gateway{
			ID: g.id(), Pod: g.pod(), PodIP: g.address(), Node: c.nodeName(g.node), Keys: g.keys, Epoch: g.epoch,
		},
	}})
}

func (c *testCluster) startGateway() { c.start(c.gateways[0]) }
