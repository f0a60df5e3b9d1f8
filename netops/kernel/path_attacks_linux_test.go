package kernel

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/testbed/require"
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
