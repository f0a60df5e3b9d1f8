package kernel

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops"
)

// TestPodFloodsGatewayAddress: a pod sends to the gateway's overlay address as fast as it can, over the route of its
// node. The packets leave the node with the node's address, but do not count against the node's limit of packets for
// the gateway itself: the node's echoes are still answered.
func TestPodFloodsGatewayAddress(t *testing.T) {
	eachPair(t, func(t *testing.T, a, b side) {
		g, n := a.gateways[0], a.nodes[1]
		g.answerEchoes(t, g.config.Internal)
		packet := packet{protocol: unix.IPPROTO_UDP, source: a.pod(1), target: g.config.Internal}.with(udp(4711, netops.EchoPort, echoRequest(t, 0)))
		f := n.pod.startFlood(t, "eth0", n.hardware("cni0"), packet, nil)
		n.expectAnswers(t, f, a.internal(1), g.config.Internal, 50*time.Millisecond)
		expectAll(t, a, b)
	})
}

// TestFloodOfHandshakes: a neighbour repeatedly sends a recorded handshake initiation to a server's gateway. It has
// valid MACs and a valid key, and costs more work than random data. The client's echoes are answered, and it gets a new
// session: immediately, or after the flood if the neighbour uses the client's address.
func TestFloodOfHandshakes(t *testing.T) {
	a, b := firstPair(t)
	client, server := a.gateways[0], b.gateways[0]
	server.answerEchoes(t, client.config.Tunnels[0].Peer)
	stats, err := server.tunnels[0].device.Stats()
	require.NoError(t, err)
	recorded := recordInitiation(t, server, client.renew)
	client.awaitTunnels()
	for name, from := range map[string]netip.Addr{"a stranger's address": netip.MustParseAddr("198.18.0.1"), "the client's address": stats.Endpoint.Addr()} {
		t.Run(name, func(t *testing.T) {
			flooding := packet{protocol: unix.IPPROTO_UDP, source: from, target: server.config.Pod}.
				with(udp(4711, server.config.Tunnels[0].ListenPort, recorded))
			f := b.nodes[0].startFlood(t, server.port(), server.hardware("eth0"), flooding, func(i int64) {
				binary.BigEndian.PutUint16(flooding[20:], uint16(i)) // a new source port has a limit of its own
			})
			// A lost handshake is repeated after five seconds, at most twice.
			client.expectSession(t, f, from == stats.Endpoint.Addr(), 12*time.Second)
		})
	}
}

// webSocketPort is the port of TestWebSocketPort.
const webSocketPort = netops.WebSocketPort

// TestWebSocketPort: a stranger may connect to the port for WebSocket, and to no other port, not by the tunnel or the
// overlay. A flood of connections, of one sender or of many, is limited before TCP, and an open connection continues.
func TestWebSocketPort(t *testing.T) {
	a, b := firstPair(t)
	g, neighbour := b.gateways[0], b.nodes[0]
	g.config.WebSocketPort = webSocketPort
	g.follow()
	to := netip.AddrPortFrom(g.config.Pod, webSocketPort)
	for _, port := range []uint16{webSocketPort, webSocketPort + 1} {
		g.ServeTCP(netip.AddrPortFrom(netip.IPv4Unspecified(), port).String(), func(c net.Conn) { _, _ = io.Copy(c, c) })
	}
	open, err := neighbour.pod.Dial(t.Context(), "tcp4", to)
	require.NoError(t, err)
	defer func() { _ = open.Close() }()
	for name, s := range map[string]struct {
		from  namespace
		to    netip.AddrPort
		chain string
	}{
		"another port":      {neighbour.pod, netip.AddrPortFrom(g.config.Pod, webSocketPort+1), "input"},
		"by the tunnel":     {a.gateways[0].namespace, netip.AddrPortFrom(g.config.Tunnels[0].Address.Addr(), webSocketPort), "input"},
		"by the overlay":    {neighbour.namespace, netip.AddrPortFrom(g.config.Internal, webSocketPort), "input"},
		"its overlay's end": {neighbour.pod, netip.AddrPortFrom(g.config.Internal, webSocketPort), "for-self"},
	} {
		t.Run(name, func(t *testing.T) { g.refuses(t, s.from, s.to, s.chain) })
	}
	g.Chain("accepted", "in", "filter hook input priority 10", fmt.Sprintf("tcp dport %d tcp flags syn / syn,ack counter", webSocketPort))
	for _, test := range []struct {
		name             string
		addresses        int64
		perSecond, burst int
	}{{"one sender", 1, 20, 100}, {"many senders", 1 << 16, 200, 200}} {
		t.Run(test.name, func(t *testing.T) {
			begin, before := time.Now(), g.counted("accepted", "in")
			packet := syn(netip.MustParseAddrPort("198.18.0.0:4711"), to)
			f := neighbour.startFlood(t, g.port(), g.hardware("eth0"), packet, func(i int64) {
				copy(packet, syn(netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 18, byte(i % test.addresses >> 8), byte(i % test.addresses)}), uint16(i)), to))
			})
			answer, err := question(open, "?", answerWait)
			t.Logf("%d packets a second", f.end())
			if err != nil || answer != "?" {
				t.Errorf("open connection: %q, %v", answer, err)
			}
			accepted, most := g.counted("accepted", "in")-before, test.burst+test.perSecond*(1+int(time.Since(begin)/time.Second))
			if accepted == 0 || accepted > most || g.drops("websocket") == 0 {
				t.Errorf("%d connections accepted, want up to %d, %d dropped", accepted, most, g.drops("websocket"))
			}
		})
	}
	expectAll(t, a, b)
}

// refuses connects to an address of a gateway: a chain drops the packets.
func (g *testGateway) refuses(t *testing.T, from namespace, to netip.AddrPort, chain string) {
	t.Helper()
	before := g.drops(chain)
	wait.Until(t, "a drop in chain "+chain, answerWait, func() bool {
		short, cancel := context.WithTimeout(t.Context(), silence)
		defer cancel()
		if c, err := from.Dial(short, "tcp4", to); err == nil {
			t.Errorf("connected to %s", to)
			_ = c.Close()
		}
		return g.drops(chain) > before
	})
}

// recordInitiation returns a handshake initiation that arrives at a gateway.
func recordInitiation(t *testing.T, at *testGateway, begin func()) []byte {
	t.Helper()
	const header, size = 8, 148
	c := watch(t, at.namespace)
	begin()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(answerWait)))
	for buf := make([]byte, 2000); ; {
		n, _, err := c.ReadFrom(buf)
		require.NoError(t, err)
		if n == header+size && string(buf[header:header+4]) == netops.Initiation && binary.BigEndian.Uint16(buf[2:]) == at.config.Tunnels[0].ListenPort {
			return slices.Clone(buf[header:n])
		}
	}
}
