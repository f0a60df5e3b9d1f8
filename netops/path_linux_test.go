package netops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/netops/tunnel"
)

// testCluster is one side of a path: two nodes with a pod each, and a gateway's pod on the first node.
type testCluster struct {
	pods, external netip.Prefix // the same on both sides where a test says so
	peer           []Mapping
	role           int // 1: server, 2: client
	nodes          [2]namespace
	podOf          [2]namespace
	gateway        namespace
	key            wgtypes.Key
	kernels        []*Kernel
}

var (
	internalCIDR = netip.MustParsePrefix("10.80.0.0/16")
	gatewayEnd   = netip.MustParseAddr("10.80.128.1")
)

// Numbers of the addresses in a node's pod range.
const (
	podNumber     = 5
	gatewayNumber = 9
)

func (c *testCluster) pod(node int) netip.Addr       { return c.inPods(node, podNumber) }
func (c *testCluster) gatewayPod() netip.Addr        { return c.inPods(0, gatewayNumber) }
func (c *testCluster) node(i int) netip.Addr         { return netip.AddrFrom4([4]byte{172, 31, byte(c.role), byte(11 + i)}) }
func (c *testCluster) internalOf(i int) netip.Addr   { return netip.AddrFrom4([4]byte{10, 80, 0, byte(1 + i)}) }
func (c *testCluster) podCIDR(node int) netip.Prefix { return netip.PrefixFrom(c.inPods(node, 0), 24) }

func (c *testCluster) inPods(node, number int) netip.Addr {
	a := c.pods.Addr().As4()
	a[2], a[3] = byte(node+1), byte(number)
	return netip.AddrFrom4(a)
}

// seen is how the other side calls an address of a pod here.
func seenAs(a netip.Addr, m Mapping) netip.Addr {
	host, network := a.As4(), m.Seen.Addr().As4()
	host[0], host[1] = network[0], network[1]
	return netip.AddrFrom4(host)
}

// build makes the namespaces of a cluster on a common switch, with the routes that a simple CNI makes and its
// masquerade of pod traffic that leaves the pod network.
func (c *testCluster) build(t *testing.T, underlay namespace) {
	for i := range c.nodes {
		n := newNamespace(t)
		c.nodes[i] = n
		port := fmt.Sprintf("n%d%d", c.role, i)
		n.ip(fmt.Sprintf("link add eth0 type veth peer name %s netns %s", port, underlay.path()))
		underlay.ip("link set " + port + " master br0 up")
		n.ip("link set eth0 up")
		n.ip(fmt.Sprintf("addr add %s/16 dev eth0", c.node(i)))
		n.ip("link add cni0 type bridge")
		n.ip("link set cni0 up")
		n.ip(fmt.Sprintf("addr add %s/24 dev cni0", c.inPods(i, 1)))
		n.ip(fmt.Sprintf("route add %s via %s", c.podCIDR(1-i), c.node(1-i)))
		n.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
		n.run("nft", fmt.Sprintf("add table ip cni; add chain ip cni post { type nat hook postrouting priority 90; };"+
			"add rule ip cni post ip saddr %s ip daddr != %s masquerade", c.pods, c.pods))
		c.podOf[i] = c.attach(t, i, podNumber)
	}
	c.gateway = c.attach(t, 0, gatewayNumber)
}

// attach makes a pod on a node.
func (c *testCluster) attach(t *testing.T, node, number int) namespace {
	p, n := newNamespace(t), c.nodes[node]
	port := fmt.Sprintf("v%d", number)
	p.ip(fmt.Sprintf("link add eth0 type veth peer name %s netns %s", port, n.path()))
	n.ip("link set " + port + " master cni0 up")
	n.ip("link set " + port + " type bridge_slave hairpin on")
	p.ip("link set eth0 up")
	p.ip(fmt.Sprintf("addr add %s/24 dev eth0", c.inPods(node, number)))
	p.ip(fmt.Sprintf("route add default via %s", c.inPods(node, 1)))
	return p
}

// connect brings nodes and gateway into their states and opens the tunnel.
func (c *testCluster) connect(t *testing.T, kind LinkKind, peer *testCluster) {
	overlay := OverlayConfig{Kind: kind, Port: 6091, MTU: 1450}
	const vni, mtu = 7, 1420
	var cidrs []netip.Prefix
	for _, m := range c.peer {
		cidrs = append(cidrs, m.Seen)
	}
	g := GatewayConfig{
		Overlay: overlay, Internal: gatewayEnd, InternalCIDR: internalCIDR, ExternalCIDR: c.external,
		Pods: []netip.Prefix{c.pods}, Peer: c.peer, VNI: vni, MTU: mtu, ClampMSS: true, ListenPort: 51840,
		Tunnel:     netip.PrefixFrom(netip.AddrFrom4([4]byte{169, 254, 18, byte(c.role)}), 30),
		TunnelPeer: netip.AddrFrom4([4]byte{169, 254, 18, byte(3 - c.role)}),
	}
	for i, n := range c.nodes {
		k := n.kernel()
		c.kernels = append(c.kernels, k)
		reach(t, k, NodeState(NodeConfig{
			Overlay: overlay, Internal: c.internalOf(i), InternalCIDR: internalCIDR, Pods: []netip.Prefix{c.podCIDR(i)},
			Peers: []NodePeer{{CIDRs: cidrs, Gateway: gatewayEnd, Pod: c.gatewayPod(), VNI: vni, MTU: mtu}},
		}))
		source := c.node(i)
		if i == 0 {
			source = c.inPods(0, 1) // the bridge, from the gateway's own node
		}
		g.Nodes = append(g.Nodes, GatewayNode{Internal: c.internalOf(i), Source: source, Pods: []netip.Prefix{c.podCIDR(i)}})
	}
	k := c.gateway.kernel()
	want := GatewayState(g)
	have, err := k.Observe()
	if err != nil {
		t.Fatal(err)
	}
	reach(t, k, want.Reachable(have))
	c.openTunnel(t, g, peer)
	reach(t, k, want)
}

func (c *testCluster) openTunnel(t *testing.T, g GatewayConfig, peer *testCluster) {
	cfg := tunnel.Config{
		Implementation: tunnel.Implementation(orEnv("LIQONET_TEST_WIREGUARD", "userspace")), Name: Tunnel,
		PrivateKey: tunnel.NewSecret(c.key), ListenPort: 51840, MTU: g.MTU, Address: g.Tunnel,
		Peer: tunnel.PeerConfig{PublicKey: peer.key.PublicKey(), AllowedIPs: []netip.Prefix{host(g.TunnelPeer)}},
	}
	for _, m := range c.peer {
		cfg.Peer.AllowedIPs = append(cfg.Peer.AllowedIPs, m.Real)
	}
	if c.role == 2 {
		// As a NodePort would: the server's first node leads to its gateway's pod.
		cfg.Peer.Endpoints = []string{netip.AddrPortFrom(peer.node(0), 30000).String()}
		cfg.Peer.KeepAlive = 15 * time.Second
		peer.nodes[0].run("nft", fmt.Sprintf("add table ip nodeport; add chain ip nodeport pre { type nat hook prerouting priority -100; };"+
			"add rule ip nodeport pre udp dport 30000 dnat to %s:51840", peer.gatewayPod()))
	}
	c.gateway.inside(func() error {
		d, err := tunnel.Open(context.Background(), cfg, slog.New(slog.DiscardHandler))
		if err == nil {
			t.Cleanup(func() {
				if err := errors.Join(d.Remove(), d.Close()); err != nil {
					t.Error(err)
				}
			})
		}
		return err
	})
}

func orEnv(name, otherwise string) string {
	if v := strings.Fields(os.Getenv(name)); len(v) > 0 {
		return v[0]
	}
	return otherwise
}

// twoClusters builds and connects two clusters.
func twoClusters(t *testing.T, kind LinkKind, podsA, podsB string, mapA, mapB []Mapping) (a, b *testCluster) {
	underlay := newNamespace(t)
	underlay.ip("link add br0 type bridge")
	underlay.ip("link set br0 up")
	external := netip.MustParsePrefix("10.70.0.0/16")
	a = &testCluster{pods: netip.MustParsePrefix(podsA), external: external, role: 2, peer: mapB}
	b = &testCluster{pods: netip.MustParsePrefix(podsB), external: external, role: 1, peer: mapA}
	for _, c := range []*testCluster{a, b} {
		var err error
		if c.key, err = wgtypes.GeneratePrivateKey(); err != nil {
			t.Fatal(err)
		}
		c.build(t, underlay)
	}
	b.connect(t, kind, a)
	a.connect(t, kind, b)
	return a, b
}

// mappings are the ranges of a peer: its pods, and its external CIDR, which collides by default.
func mappings(pods, seen string) []Mapping {
	p := netip.MustParsePrefix
	return []Mapping{{Real: p(pods), Seen: p(seen)}, {Real: p("10.70.0.0/16"), Seen: p("10.71.0.0/16")}}
}

// serveSources answers every TCP connection and UDP packet at port 7000 with the source address that it bears.
func serveSources(t *testing.T, ns namespace) {
	ns.inside(func() error {
		tcp, err := net.Listen("tcp4", "0.0.0.0:7000")
		if err != nil {
			return err
		}
		udp, err := net.ListenPacket("udp4", "0.0.0.0:7000")
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = errors.Join(tcp.Close(), udp.Close()) })
		go func() {
			for {
				c, err := tcp.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().String())
				_ = c.Close()
			}
		}()
		go func() {
			buf := make([]byte, 2000)
			for {
				_, from, err := udp.ReadFrom(buf)
				if err != nil {
					return
				}
				_, _ = udp.WriteTo([]byte(from.(*net.UDPAddr).AddrPort().Addr().String()), from)
			}
		}()
		return nil
	})
}

// sourceSeen tells which source address a server sees. It tries until the tunnel stands.
func sourceSeen(t *testing.T, from namespace, network string, to netip.Addr) string {
	t.Helper()
	var answer []byte
	from.inside(func() error {
		deadline := time.Now().Add(15 * time.Second)
		for {
			err := func() error {
				c, err := net.DialTimeout(network, netip.AddrPortFrom(to, 7000).String(), time.Second)
				if err != nil {
					return err
				}
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(time.Second))
				if _, err := c.Write([]byte("?")); err != nil {
					return err
				}
				answer = make([]byte, 100)
				n, err := c.Read(answer)
				answer = answer[:n]
				return err
			}()
			if err == nil || time.Now().After(deadline) {
				return err
			}
		}
	})
	return string(answer)
}

func TestPath(t *testing.T) {
	for _, kind := range overlays() {
		for name, c := range map[string]struct{ podsA, podsB, seenA, seenB string }{
			"equal CIDRs":    {"10.244.0.0/16", "10.244.0.0/16", "10.12.0.0/16", "10.11.0.0/16"},
			"disjoint CIDRs": {"10.244.0.0/16", "10.245.0.0/16", "10.244.0.0/16", "10.245.0.0/16"},
		} {
			t.Run(string(kind)+"/"+name, func(t *testing.T) {
				testPath(t, kind, c.podsA, c.podsB, mappings(c.podsA, c.seenA), mappings(c.podsB, c.seenB))
			})
		}
	}
}

func testPath(t *testing.T, kind LinkKind, podsA, podsB string, mapA, mapB []Mapping) {
	a, b := twoClusters(t, kind, podsA, podsB, mapA, mapB)
	for _, side := range []struct {
		name       string
		from, to   *testCluster
		fromM, toM Mapping
	}{{"a to b", a, b, mapA[0], mapB[0]}, {"b to a", b, a, mapB[0], mapA[0]}} {
		t.Run(side.name, func(t *testing.T) {
			for j, server := range side.to.podOf {
				serveSources(t, server)
				target := seenAs(side.to.pod(j), side.toM)
				for i, client := range side.from.podOf {
					want := seenAs(side.from.pod(i), side.fromM).String()
					for _, network := range []string{"tcp4", "udp4"} {
						if got := sourceSeen(t, client, network, target); got != want {
							t.Errorf("%s from pod %d to pod %d: the server sees %s, want %s", network, i, j, got, want)
						}
					}
					client.run("ping", "-c1", "-W2", target.String())
					// The largest packet that travels whole, and one that is too large: told by the first hop.
					client.run("ping", "-c1", "-W2", "-Mdo", "-s1392", target.String()) // 1420 - 28
				}
				for i, n := range side.from.nodes {
					want := fmt.Sprintf("10.71.0.%d", i+1)
					if got := sourceSeen(t, n, "tcp4", target); got != want {
						t.Errorf("tcp from node %d to pod %d: the server sees %s, want %s", i, j, got, want)
					}
				}
			}
			remote := netip.MustParseAddr("10.71.0.2")
			side.from.nodes[0].run("ping", "-c1", "-W2", remote.String())
		})
	}
}
