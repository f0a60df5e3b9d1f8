package clusters

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/process"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/wireguard"
	"liqonet.io/liqonet/netops"
)

// Gateway is the pod of a gateway.
type Gateway struct {
	netns.Namespace
	Peering string // "": "peer"
	Number  int    // from 1
	Place   int    // number of the pod among those with the same key, from 0
	Node    int    // index of the node on which it runs
	Host    byte   // number of its address in the node's pod range; 0: by its number
	Key     wgtypes.Key
	Keys    string // folder of the keys
	Epoch   string // folder of the pod's epoch
	Helper  *process.Process
}

// PresharedKey is that of all tunnels.
var PresharedKey = wgtypes.Key{1, 2, 3}

// ID returns the gateway in records.
func (g *Gateway) ID() records.GatewayID {
	return records.GatewayID{Peering: cmp.Or(g.Peering, "peer"), Number: g.Number}
}

// Pod returns the name of the pod.
func (g *Gateway) Pod() string { return fmt.Sprintf("%s-%d", g.ID().Name(), g.Place) }

// Address returns the address of the pod.
func (g *Gateway) Address() netip.Addr { return InPods(g.Node, g.Host) }

// AddGateway creates the pod of another gateway: the first on the first node, the second on the second.
func (c *Cluster) AddGateway() *Gateway {
	c.t.Helper()
	g := &Gateway{Number: len(c.Gateways) + 1, Node: len(c.Gateways) % len(c.Nodes), Keys: c.t.TempDir()}
	var err error
	g.Key, err = wgtypes.GeneratePrivateKey()
	require.NoError(c.t, err)
	writeKeys(c.t, g.Keys, g.Key)
	c.AddGatewayPod(g)
	c.Gateways = append(c.Gateways, g)
	return g
}

// ReplaceGatewayPod creates another pod of a gateway, with the same keys, on the other node.
func (c *Cluster) ReplaceGatewayPod(old *Gateway) *Gateway {
	g := &Gateway{Peering: old.Peering, Number: old.Number, Place: old.Place + 1, Node: 1 - old.Node, Key: old.Key, Keys: old.Keys}
	c.AddGatewayPod(g)
	c.Gateways[g.Number-1] = g
	return g
}

// AddGatewayPod creates the pod of a gateway.
func (c *Cluster) AddGatewayPod(g *Gateway) {
	c.t.Helper()
	g.Host = cmp.Or(g.Host, GatewayNumber+byte((g.Number-1)/len(c.Nodes)))
	g.Namespace, g.Epoch = c.AddPod(g.Node, g.Host), c.t.TempDir()
	labels := g.ID().Identity(records.ComponentGateway).Labels()
	c.Create(PodObject(records.DefaultNamespace, g.Pod(), c.NodeName(g.Node), g.Address(), labels))
}

// Record returns the record of the CLI for the gateways that both clusters have.
func (c *Cluster) Record(peer *Cluster) records.Peering {
	p := records.Peering{
		Version: records.SchemaVersion, Name: "peer", Number: 1, Role: records.Server,
		Peer: records.Peer{
			ClusterID: "id-" + peer.Name, Name: peer.Name,
			PodCIDRs:      []records.Mapping{{Real: PodCIDR, Seen: peer.Remapped}},
			ExternalCIDRs: []records.Mapping{{Real: ExternalCIDR, Seen: PeerExternal}},
		},
		Local: records.Local{
			PodCIDRs:      []records.Mapping{{Real: PodCIDR, Seen: c.Remapped}},
			ExternalCIDRs: []records.Mapping{{Real: ExternalCIDR, Seen: PeerExternal}},
		},
		Settings: records.GatewaySettings{Implementation: &c.Kinds.WireGuard}, MTU: PathMTU,
	}
	if c.Kinds.WireGuard == records.Unencrypted {
		p.Settings = records.GatewaySettings{Tunnel: new(records.PlainTunnel), Unencrypted: new(true), AllowPublic: new(true)}
		p.Peer.NodeNetworks = []netip.Prefix{netip.PrefixFrom(peer.NodeAddress(0), 24).Masked()}
	}
	if c.webSocket() {
		p.Settings.WebSocket, p.Settings.Transport = new(true), &c.Kinds.Transport
	}
	if c.Mode != "" {
		p.Settings.GatewayMode = &c.Mode
	}
	if !c.Serves {
		p.Role = records.Client
	}
	for _, g := range c.Gateways {
		own := records.LocalGateway{}
		for _, far := range peer.Gateways {
			own.Tunnels = append(own.Tunnels, c.Tunnel(g, peer, far))
		}
		p.Gateways = append(p.Gateways, own)
	}
	return p
}

// Tunnel returns a gateway's end of its tunnel to a gateway of the peer.
func (c *Cluster) Tunnel(g *Gateway, peer *Cluster, far *Gateway) records.Tunnel {
	ofServer, ofClient := g, far
	if !c.Serves {
		ofServer, ofClient = far, g
	}
	t := records.Tunnel{
		Driver: records.Driver{WireGuard: wireguard.Peer{PublicKey: far.Key.PublicKey().String()}}, ListenPort: uint16(ListenPort + ofClient.Number - 1),
	}
	if c.Serves {
		return t
	}
	node := len(peer.Nodes) - 1
	if len(peer.Gateways) > 1 || c.Kinds.WireGuard == records.Unencrypted { // that needs the gateway's own
		node = far.Node // each through a different node
	}
	if c.Elsewhere {
		node = 1 - node
	}
	t.Endpoints = []string{netip.AddrPortFrom(peer.NodeAddress(node), uint16(ServerPort+records.TunnelID{Server: ofServer.Number, Client: ofClient.Number}.Index())).String()}
	if c.Endpoint.IsValid() {
		t.Endpoints = []string{c.Endpoint.String()}
	}
	t.Endpoints = append(t.Endpoints, c.OtherEndpoints...)
	if c.webSocket() {
		t.WebSocket = []string{fmt.Sprintf("wss://%s:%d/", peer.NodeAddress(node), WebSocketPort+ofServer.Number-1)}
	}
	if c.Kinds.Transport == records.WebSocket {
		t.Endpoints = nil
	}
	return t
}

func (c *Cluster) webSocket() bool {
	return c.Kinds.Transport != "" && c.Kinds.Transport != records.UDP
}

// Forward forwards the NodePorts of a server's gateway, at all nodes.
func (c *Cluster) Forward(g *Gateway) { c.ForwardAt(g, c.Nodes...) }

// ForwardAt is Forward for some nodes. One of several masquerades, as the gateway may run on another one. For tunnels
// without encryption none does: externalTrafficPolicy is Local.
func (c *Cluster) ForwardAt(g *Gateway, nodes ...netns.Namespace) {
	if !c.Serves {
		return
	}
	var to, from strings.Builder
	for client := range records.MaxGateways {
		port := ListenPort + client
		fmt.Fprintf(&to, "udp dport %d dnat to %s:%d\n", ServerPort+records.MaxGateways*(g.Number-1)+client, g.Address(), port)
		fmt.Fprintf(&from, "ip daddr %s udp dport %d ct status dnat masquerade\n", g.Address(), port)
	}
	fmt.Fprintf(&to, "tcp dport %d dnat to %s:%d\n", WebSocketPort+g.Number-1, g.Address(), netops.WebSocketPort)
	fmt.Fprintf(&from, "ip daddr %s tcp dport %d ct status dnat masquerade\n", g.Address(), netops.WebSocketPort)
	for _, n := range nodes {
		n.Chain("services", "pre", "nat hook prerouting priority -100", to.String())
		if len(c.Nodes) > 1 && c.Kinds.WireGuard != records.Unencrypted {
			n.Chain("services", "post", "nat hook postrouting priority 100", from.String())
		}
	}
}
