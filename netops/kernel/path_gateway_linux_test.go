package kernel

import (
	"fmt"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/echo"
)

const overlayPort = 6091 // see newGateway

// TestForgedProbe: a third host forges the address and port of a peer's tunnel, and sends a path MTU probe to a gateway
// that has just started and has no flows yet. The tunnel's own packets still reach the tunnel.
func TestForgedProbe(t *testing.T) {
	t.Parallel()
	a, b := firstPair(t)
	client, server := a.gateways[0], b.gateways[0]
	stats, err := server.tunnels[0].device.Stats()
	require.NoError(t, err)
	received := listenAll(t, b)
	client.IP("link set eth0 down")
	require.NoError(t, server.kernel.FlushConntrack([]netip.Prefix{cidr.Single(stats.Endpoint.Addr())}))
	const nodePort = 30001 // see join
	probe := echo.Magic + " and what follows"
	forged := packet{protocol: unix.IPPROTO_UDP, source: stats.Endpoint.Addr(), target: b.node(0)}
	b.router.emit("nodes-b", b.nodes[0].hardware("eth0"), forged.with(udp(stats.Endpoint.Port(), nodePort, []byte(probe))))
	wait.Until(t, "the probe", answerWait, func() bool { return received.has(probe) })
	client.IP("link set eth0 up")
	client.IP(fmt.Sprintf("route add default via %s", a.inPods(0, bridgeNumber)))
	client.awaitTunnels()
	expectAll(t, a, b)
}

// TestGatewayAddresses: a neighbour of a gateway pod sends to the gateway's overlay and tunnel addresses, with its own
// address and with those of permitted senders. The pod's own link accepts none of them.
func TestGatewayAddresses(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, a, b side) {
		g, neighbour := a.gateways[0], a.nodes[0]
		// Without reverse path filters and bridge filters, which would drop them as well.
		g.Run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.eth0.rp_filter=0")
		neighbour.Run("sysctl", "-qwe", "net.bridge.bridge-nf-call-iptables=0")
		received := listenAll(t, a)
		for name, target := range map[string]netip.Addr{"overlay": g.config.Internal, "tunnel": g.config.Tunnels[0].Address.Addr()} {
			for who, source := range map[string]netip.Addr{"itself": a.pod(0), "a node": a.internal(1), "the peer's gateway": g.config.Tunnels[0].Peer} {
				t.Run(fmt.Sprintf("%s as %s", name, who), func(t *testing.T) {
					received.forget()
					before := g.drops("uplink")
					send := func(to netip.Addr, payload string) {
						forged := packet{protocol: unix.IPPROTO_UDP, source: source, target: to}
						neighbour.pod.emit("eth0", g.hardware("eth0"), forged.with(udp(netops.EchoPort, netops.EchoPort, []byte(payload))))
					}
					send(target, bad)
					send(g.config.Pod, good)
					wait.Until(t, "the packet sent after it", answerWait, func() bool { return received.has(good) })
					if received.has(bad) || g.drops("uplink") == before {
						t.Errorf("received: %v, drops: %d", received.has(bad), g.drops("uplink")-before)
					}
				})
			}
		}
		expectAll(t, a, b)
	})
}

// TestPingOverlay: both ends of the overlay answer pings of each other, up to the MTU, for troubleshooting.
func TestPingOverlay(t *testing.T) {
	t.Parallel()
	eachPair(t, func(_ *testing.T, a, _ side) {
		g := a.gateways[0]
		for i, n := range a.nodes {
			for _, size := range []string{"56", "1300"} {
				n.Run("ping", "-q", "-c1", "-w20", "-s", size, g.config.Internal.String())
				g.Run("ping", "-q", "-c1", "-w20", "-s", size, a.internal(i).String())
			}
		}
	})
}

// TestExtendedOverlayIPv6 sends a gateway overlay packets by IPv6 with extension headers before UDP.
func TestExtendedOverlayIPv6(t *testing.T) {
	t.Parallel()
	const hopByHop, routing, fragment, options = 0, 43, 44, 60
	pad := []byte{0, 1, 4, 0, 0, 0, 0} // of an extension header, after the number of the next one
	zero := make([]byte, 7)
	a, b := firstPair(t)
	g, pod := a.gateways[0], a.nodes[0].pod
	received := listenAll(t, a, b)
	f := g.frame(g.config.Internal, a.pod(0), b.seenPod(1), bad)
	source, target := netip.MustParseAddr(pod.linkLocal("eth0")).AsSlice(), netip.MustParseAddr(g.linkLocal("eth0")).AsSlice()
	body := udp(overlayPort, overlayPort, f.bytes())
	for name, headers := range map[string][]byte{
		"none":                  {},
		"hop by hop":            {hopByHop},
		"destination options":   {options},
		"many":                  {options, options, options},
		"routing":               {routing},
		"routing and options":   {routing, options},
		"one and only fragment": {fragment},
	} {
		t.Run(name, func(t *testing.T) {
			var extensions []byte
			for i := range headers {
				next := append(headers[i+1:], unix.IPPROTO_UDP)[0]
				rest := pad
				if headers[i] == routing || headers[i] == fragment {
					rest = zero
				}
				extensions = append(append(extensions, next), rest...)
			}
			p := []byte{0x60, 0, 0, 0, 0, byte(len(extensions) + len(body)), append(headers, unix.IPPROTO_UDP)[0], 64}
			p = append(append(append(append(p, source...), target...), extensions...), body...)
			expectDrop(t, g.namespace, "ipv6-outer", func() { pod.emit("eth0", g.hardware("eth0"), p) })
		})
	}
	expectAll(t, a, b)
	if received.has(bad) {
		t.Error("one of them arrived")
	}
}
