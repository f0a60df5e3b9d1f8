package kernel

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// TestForgedFragments: another host sends the first fragment of a packet whose second fragment the peer sends. The
// kernel reassembles fragments before rules and reverse path filters, regardless of their links.
func TestForgedFragments(t *testing.T) {
	t.Parallel()
	for _, kind := range overlays() {
		a, b, c := threeSides(t)
		join(kind, b, a)
		join(kind, a, c)
		n, toB, toC := a.nodes[1], a.gateways[0], a.gateways[1]
		for _, ns := range []namespace{a.nodes[0].namespace, n.namespace} {
			ns.Run("sysctl", "-qwe", "net.bridge.bridge-nf-call-iptables=0")
		}
		received := listenAll(t, a)
		byLink := func(from namespace, link string, to net.HardwareAddr) func([]byte) {
			return func(piece []byte) { from.emit(link, to, piece) }
		}
		inOverlay := func(g *testGateway) func([]byte) {
			return func(piece []byte) {
				toOverlay(t, g.namespace, a.node(1), g.around(a.internal(1), unix.ETH_P_IP, piece))
			}
		}
		inTunnel := func(piece []byte) { c.gateways[0].inject(t, piece) }
		for name, f := range map[string]struct {
			source       netip.Addr // of a pod of C, as it is reached from the receiver
			stranger, by func([]byte)
			at           namespace
			chain        string
		}{
			"gateway, by its neighbour":        {c.pod(1), byLink(a.nodes[0].pod, "eth0", toC.hardware("eth0")), inTunnel, toC.namespace, "uplink"},
			"node, by another peering's":       {c.seenPod(1), inOverlay(toB), inOverlay(toC), n.namespace, "pieces-b"},
			"node, by a pod":                   {c.seenPod(1), byLink(n.pod, "eth0", n.hardware("cni0")), inOverlay(toC), n.namespace, "pieces"},
			"node, by one of the nodes' links": {c.seenPod(1), byLink(a.router, "nodes-a", n.hardware("eth0")), inOverlay(toC), n.namespace, "pieces"},
		} {
			t.Run(fmt.Sprintf("%s/%s", kind, name), func(t *testing.T) {
				received.forget()
				const end = " of three pieces"
				evil, _ := pieces(f.source, a.pod(1), 99, "a forged"+end)
				first, second := pieces(f.source, a.pod(1), 99, "the true"+end)
				expectDrop(t, f.at, f.chain, func() { f.stranger(evil) })
				// repeated, because a packet is lost while the tunnel is renewed.
				wait.Until(t, "the packet of the peer", answerWait, func() bool {
					f.by(second)
					f.by(first)
					return received.has("the true" + end)
				})
				if received.has("a forged" + end) {
					t.Error("it is a part of the peer's packet")
				}
			})
		}
		expectAll(t, a, c)
	}
}

// TestForgedConnection: a host of the nodes' network opens a connection with a forged address of a peer to a port of a
// node that is translated to a pod, without reverse path filters. The peer cannot continue it.
func TestForgedConnection(t *testing.T) {
	t.Parallel()
	const redirected = 30082
	eachPair(t, func(t *testing.T, a, b side) {
		n := a.nodes[1]
		n.Run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.eth0.rp_filter=0")
		n.Chain("proxy", "pre", "nat hook prerouting priority -100",
			fmt.Sprintf("fib daddr type local udp dport %d dnat to %s", nodePort, at(a.pod(1))),
			fmt.Sprintf("udp dport %d dnat to %s", redirected, at(a.node(1))))
		serve(n.namespace, a.node(1), "node a1")
		for name, f := range map[string]struct {
			local, to netip.AddrPort // as on the node, and as the peer reaches it
			chain     string
		}{
			"to a pod":    {netip.AddrPortFrom(a.internal(1), nodePort), netip.AddrPortFrom(a.seenNode(1), nodePort), "to-node"},
			"to the node": {netip.AddrPortFrom(a.pod(1), redirected), netip.AddrPortFrom(a.seenPod(1), redirected), "into-node"},
		} {
			t.Run(name, func(t *testing.T) {
				c, err := b.nodes[1].pod.Dial(t.Context(), "udp4", f.to)
				require.NoError(t, err)
				defer func() { _ = c.Close() }()
				port := netip.MustParseAddrPort(c.LocalAddr().String()).Port()
				forged := packet{protocol: unix.IPPROTO_UDP, source: b.seenPod(1), target: f.local.Addr()}
				a.router.emit("nodes-a", n.hardware("eth0"), forged.with(udp(port, f.local.Port(), []byte("?"))))
				_, _ = answerOf(t, c, b.nodes[1].namespace) // the reply to the forged packet, if the node sends one
				before := n.drops(f.chain)
				if got, answered := answerOf(t, c, b.nodes[1].namespace); answered {
					t.Errorf("%q, want silence", got)
				}
				wait.Until(t, "a drop in chain "+f.chain, answerWait, func() bool { return n.drops(f.chain) > before })
			})
		}
		expectAll(t, a, b)
	})
}

// TestTranslatedToGateway: a Service, with EndpointSlices written by a user, leads to the overlay port of a gateway.
// Overlay packets do not reach it with the node's address.
func TestTranslatedToGateway(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, a, b side) {
		n, g := a.nodes[1], a.gateways[0]
		n.Chain("proxy", "pre", "nat hook prerouting priority -100",
			fmt.Sprintf("fib daddr type local udp dport %d dnat to %s:%d", nodePort, g.config.Pod, g.config.Overlay.Port))
		n.Chain("proxy", "post", "nat hook postrouting priority 100", "ct status dnat masquerade")
		received := listenAll(t, b)
		f := g.frame(g.config.Internal, a.pod(0), b.seenPod(1), "")
		for name, from := range map[string]namespace{"pod": n.pod, "host of the nodes' network": a.router} {
			t.Run(name, func(t *testing.T) {
				c, err := from.Dial(t.Context(), "udp4", netip.AddrPortFrom(a.node(1), nodePort))
				require.NoError(t, err)
				defer func() { _ = c.Close() }()
				before := n.drops("source")
				for range 2 { // also later packets of the flow
					f.payload = bad
					_, err := c.Write(f.bytes())
					require.NoError(t, err)
				}
				wait.Until(t, "two drops in chain source", answerWait, func() bool { return n.drops("source") >= before+2 })
				f.payload = good
				toOverlay(t, n.namespace, g.config.Pod, f.bytes())
				wait.Until(t, "the packet sent after it", answerWait, func() bool { return received.has(good) })
				if received.has(bad) {
					t.Error("it arrived")
				}
				received.forget()
			})
		}
	})
}

// TestEncapsulatedFrames: a gateway sends a node packets in nested encapsulations. Each is filtered by the addresses
// that are routed in the end.
func TestEncapsulatedFrames(t *testing.T) {
	t.Parallel()
	const inIP, broadcast = 4, "\xff\xff\xff\xff\xff\xff"
	eachPair(t, func(t *testing.T, a, b side) {
		g, n := a.gateways[0], a.nodes[1]
		n.Run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0")
		f := g.frame(a.internal(1), b.seenPod(1), a.pod(1), bad)
		toNode := datagram(b.seenPod(1), a.node(1), bad)
		nested := func(source netip.Addr) []byte {
			outer := packet{protocol: unix.IPPROTO_UDP, source: source, target: a.internal(1)}
			return f.around(unix.ETH_P_IP, outer.with(udp(overlayPort, overlayPort, f.bytes())))
		}
		toAll := f.around(unix.ETH_P_IP, toNode)
		copy(toAll[8:], broadcast)
		for name, c := range map[string]struct {
			payload []byte
			chain   string
		}{
			"in VLAN 0":                      {f.around(unix.ETH_P_8021Q, append([]byte{0, 0, 0x08, 0}, toNode...)), "to-node"},
			"in VLAN 0 of a provider":        {f.around(unix.ETH_P_8021AD, append([]byte{0, 0, 0x08, 0}, toNode...)), "to-node"},
			"in IP":                          {f.around(unix.ETH_P_IP, packet{protocol: inIP, source: b.seenPod(1), target: a.internal(1)}.with(toNode)), "to-node"},
			"in the overlay, as the peer":    {nested(b.seenPod(1)), "to-node"},
			"in the overlay, as the gateway": {nested(g.config.Pod), "from-b"},
			"to all hardware addresses":      {toAll, "to-node"},
		} {
			t.Run(name, func(t *testing.T) {
				expectDrop(t, n.namespace, c.chain, func() { toOverlay(t, g.namespace, a.node(1), c.payload) })
			})
		}
		expectAll(t, a, b)
	})
}

// TestSourceRoutes: a peer's pod sends with source routes over permitted addresses of a node that accepts source
// routes, to a port of the node and to another node.
func TestSourceRoutes(t *testing.T) {
	t.Parallel()
	const loose = 131 // LSRR, RFC 791
	eachPair(t, func(t *testing.T, a, b side) {
		n := a.nodes[1]
		for _, ns := range []namespace{n.namespace, a.nodes[0].namespace, a.gateways[0].namespace} { // pods inherit it
			ns.Run("sysctl", "-qw", "net.ipv4.conf.all.accept_source_route=1", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.eth0.rp_filter=0")
		}
		received := listenAll(t, a)
		by := a.inPods(1, bridgeNumber)
		for name, target := range map[string]netip.Addr{"node": a.internal(1), "another node": a.node(0)} {
			t.Run(name, func(t *testing.T) {
				received.forget()
				next := target.As4()
				p := packet{protocol: unix.IPPROTO_UDP, source: b.pod(1), target: by, options: append([]byte{loose, 7, 4}, append(next[:], 0)...)}
				before := n.drops("inner")
				wait.Until(t, "a drop in chain inner, and the packet sent after it", answerWait, func() bool {
					b.gateways[0].inject(t, p.with(udp(servicePort, servicePort, []byte(bad))))
					b.gateways[0].inject(t, datagram(b.pod(1), a.pod(1), good))
					return n.drops("inner") > before && received.has(good)
				})
				if received.has(bad) {
					t.Error("it arrived")
				}
			})
		}
	})
}

// TestErrorsIntoOverlay: a host of the nodes' network, whose connection a node translates, sends ICMP errors about it
// to the peer. Of translated packets, only those of the connection itself enter the overlay.
func TestErrorsIntoOverlay(t *testing.T) {
	t.Parallel()
	const unreachable = 3
	eachPair(t, func(t *testing.T, a, b side) {
		n := a.nodes[1]
		n.Chain("proxy", "pre", "nat hook prerouting priority -100",
			fmt.Sprintf("fib daddr type local udp dport %d dnat to %s", nodePort, at(a.pod(1))))
		c := datagrams(t, a.router, netip.AddrPortFrom(a.node(1), nodePort), unix.IP_PMTUDISC_DONT)
		_, err := question(c, "?", answerWait)
		require.NoError(t, err)
		local := netip.MustParseAddrPort(c.LocalAddr().String())
		about := packet{protocol: unix.IPPROTO_UDP, source: a.node(1), target: local.Addr()}.with(udp(nodePort, local.Port(), nil))
		forged := icmpAbout(unreachable, local.Addr(), b.seenPod(1), about)
		expectDrop(t, n.namespace, "into-overlay", func() { a.router.emit("nodes-a", n.hardware("eth0"), forged) })
	})
}
