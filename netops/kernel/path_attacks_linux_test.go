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
	for _, kind := range overlays() {
		t.Run(string(kind), func(t *testing.T) {
			a, b := equalRanges().build(t, nil)
			join(kind, a, b)
			g, n := a.gateways[0], a.nodes[1]
			g.answerEchoes(t, g.config.Internal)
			send, done := n.pod.emitter("eth0", n.hardware("cni0"))
			t.Cleanup(done)
			packet := packet{protocol: unix.IPPROTO_UDP, source: a.pod(1), target: g.config.Internal}.with(udp(4711, netops.EchoPort, echoRequest(t, 0)))
			f := startFlood(t, func(int64) { _ = send(packet) })
			share := n.answered(t, a.internal(1), netip.AddrPortFrom(g.config.Internal, netops.EchoPort), 50*time.Millisecond)
			t.Logf("%d packets a second; %.0f %% of the node's echoes answered", f.end(), 100*share)
			if share < leastAnswered {
				t.Errorf("%.0f %% of the node's echoes are answered", 100*share)
			}
			expectAll(t, a, b)
		})
	}
}

// TestFloodOfHandshakes: a neighbour repeatedly sends a recorded handshake initiation to a server's gateway. It has
// valid MACs and a valid key, and costs more work than random data. The client's echoes are answered, and it gets a new
// session: immediately, or after the flood if the neighbour uses the client's address.
func TestFloodOfHandshakes(t *testing.T) {
	a, b := equalRanges().build(t, nil)
	join(overlays()[0], a, b)
	client, server := a.gateways[0], b.gateways[0]
	end := server.config.Tunnels[0].Address.Addr()
	server.answerEchoes(t, end)
	nodePort := netip.AddrPortFrom(b.node(0), 30001) // see connect
	stats, err := server.tunnels[0].device.Stats()
	require.NoError(t, err)
	recorded := recordInitiation(t, server, func() {
		client.Inside(func() error { return client.tunnels[0].device.RenewAt(nodePort) })
	})
	client.awaitTunnels()
	for name, from := range map[string]netip.Addr{"a stranger's address": netip.MustParseAddr("198.18.0.1"), "the client's address": stats.Endpoint.Addr()} {
		t.Run(name, func(t *testing.T) {
			send, done := b.nodes[0].emitter(server.port(), server.hardware("eth0"))
			t.Cleanup(done)
			flooding := packet{protocol: unix.IPPROTO_UDP, source: from, target: server.config.Pod}.
				with(udp(4711, server.config.Tunnels[0].ListenPort, recorded))
			f := startFlood(t, func(i int64) {
				binary.BigEndian.PutUint16(flooding[20:], uint16(i)) // a new source port has a limit of its own
				_ = send(flooding)
			})
			share := client.answered(t, client.config.Tunnels[0].Address.Addr(), netip.AddrPortFrom(end, netops.EchoPort), 50*time.Millisecond)
			if from == stats.Endpoint.Addr() {
				f.endShared() // on a new port the client itself is an unknown sender at that address
			}
			begin := time.Now()
			client.Inside(func() error { return client.tunnels[0].device.RenewAt(nodePort) })
			client.awaitTunnels()
			took := time.Since(begin)
			t.Logf("%d packets a second; %.0f %% of the client's echoes answered, a new session in %s", f.end(), 100*share, took)
			if share < leastAnswered {
				t.Errorf("%.0f %% of the client's echoes are answered", 100*share)
			}
			if took > 12*time.Second { // a lost handshake is repeated after five seconds, at most twice
				t.Errorf("a new session took %s", took)
			}
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
