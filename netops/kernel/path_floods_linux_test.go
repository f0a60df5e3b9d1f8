package kernel

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/echo"
)

// TestFloodOfEchoes: a neighbour of A's gateway sends echoes with the address of a node as fast as it can. Echoes of
// the other node are still answered, and so are path MTU requests outside the overlay.
func TestFloodOfEchoes(t *testing.T) {
	eachPair(t, func(t *testing.T, a, _ side) {
		g, calm := a.gateways[0], a.nodes[0]
		loud := g.config.Nodes[1]
		request := udp(4711, netops.EchoPort, echoRequest(t, 0))
		inner := packet{protocol: unix.IPPROTO_UDP, source: loud.Internal, target: g.config.Internal}.with(request)
		outer := g.around(g.config.Internal, unix.ETH_P_IP, inner)
		for name, test := range map[string]struct {
			flood    []byte
			calm, to netip.Addr
		}{
			"overlay":  {udp(4711, overlayPort, outer), a.internal(0), g.config.Internal},
			"underlay": {request, a.inPods(0, bridgeNumber), g.config.Pod},
		} {
			t.Run(name, func(t *testing.T) {
				g.answerEchoes(t, test.to)
				flooding := packet{protocol: unix.IPPROTO_UDP, source: loud.Source, target: g.config.Pod}.with(test.flood)
				f := calm.startFlood(t, g.port(), g.hardware("eth0"), flooding, nil)
				calm.expectAnswers(t, f, test.calm, test.to, 50*time.Millisecond)
			})
		}
	})
}

// TestFloodOfPeersNode: the gateway sends a node of A echoes of a node of B as fast as it can. Echoes of B's other node
// are answered.
func TestFloodOfPeersNode(t *testing.T) {
	a, b := firstPair(t)
	n, g := a.nodes[0], a.gateways[0]
	n.answerEchoes(t, a.internal(0))
	loud := packet{protocol: unix.IPPROTO_UDP, source: b.seenNode(1), target: a.internal(0)}.with(udp(netops.EchoPort, netops.EchoPort, echoRequest(t, 0)))
	f := g.around(a.internal(0), unix.ETH_P_IP, loud)
	outer := packet{protocol: unix.IPPROTO_UDP, source: g.config.Pod, target: g.config.Nodes[0].Source}.with(udp(4711, overlayPort, f))
	flood := g.startFlood(t, "eth0", n.hardware("cni0"), outer, nil)
	b.nodes[0].expectAnswers(t, flood, b.internal(0), a.seenNode(0), 100*time.Millisecond)
}

// TestHiddenEchoes: a node sends its gateway overlay packets with the inner packet at an unusual offset, and at the
// usual offset a header with a pod's address, so that the echo limit would not count them. None is accepted.
func TestHiddenEchoes(t *testing.T) {
	eachPair(t, func(t *testing.T, a, _ side) {
		g := a.gateways[0]
		received := listenAll(t, a)
		asking := func(payload string) []byte {
			p := packet{protocol: unix.IPPROTO_UDP, source: a.internal(1), target: g.config.Internal}
			return p.with(udp(netops.EchoPort, netops.EchoPort, []byte(payload)))
		}
		inner := asking(bad)
		plain := g.around(g.config.Internal, unix.ETH_P_IP, asking(good))
		priorityTag := []byte{0, 0, 8, 0} // VLAN 0, before IPv4
		hidden := map[string][]byte{"tag": g.around(g.config.Internal, unix.ETH_P_8021Q, append(priorityTag, inner...))}
		if g.config.Overlay.Kind == netops.KindGeneve {
			option := []byte{0, 0, 0, 0}
			hidden["option"] = slices.Insert(g.around(g.config.Internal, unix.ETH_P_IP, inner), 8, option...)
			hidden["option"][0] = 1
		}
		for name, packet := range hidden {
			t.Run(name, func(t *testing.T) {
				send := func(payload []byte) func() {
					return func() { toOverlay(t, a.nodes[1].namespace, g.config.Pod, payload) }
				}
				received.expectDrop(t, g.namespace, "from-overlay", send(packet), send(plain))
			})
		}
	})
}

// TestFloodOfListenPort sends handshakes of unknown senders to the NodePort of a server's gateway, as fast as one
// processor can, from one address and from many. Packets of the known client still pass, and so does its next
// handshake.
func TestFloodOfListenPort(t *testing.T) {
	a, b := firstPair(t)
	client, server := a.gateways[0], b.gateways[0]
	server.answerEchoes(t, client.config.Tunnels[0].Peer)
	initiation := append([]byte{1, 0, 0, 0}, make([]byte, 144)...)
	stats, err := server.tunnels[0].device.Stats()
	require.NoError(t, err)
	for name, test := range map[string]struct {
		from      netip.Addr
		addresses int64
	}{
		"one address":    {netip.MustParseAddr("198.18.0.0"), 1},
		"many addresses": {netip.MustParseAddr("198.18.0.0"), 1 << 16},
		"the client's address, as behind kube-proxy": {stats.Endpoint.Addr(), 1},
	} {
		t.Run(name, func(t *testing.T) {
			stranger := packet{protocol: unix.IPPROTO_UDP, source: test.from, target: server.config.Pod}.
				with(udp(4711, server.config.Tunnels[0].ListenPort, initiation))
			last := uint16(cidr.Number(test.from))
			f := b.nodes[0].startFlood(t, server.port(), server.hardware("eth0"), stranger, func(i int64) {
				binary.BigEndian.PutUint16(stranger[14:], last+uint16(i%test.addresses))
				stranger[10], stranger[11] = 0, 0
				binary.BigEndian.PutUint16(stranger[10:], checksum(stranger[:20]))
			})
			// A lost handshake is repeated after five seconds.
			client.expectSession(t, f, test.from == stats.Endpoint.Addr(), 4*time.Second)
			if server.drops("listen") == 0 {
				t.Error("no packet dropped")
			}
		})
	}
}

// TestGuessesWithoutEncryption: of a sender that guesses the VNI of a server's tunnels, few packets are checked,
// whatever its ports. It keeps out no sender with another address.
func TestGuessesWithoutEncryption(t *testing.T) {
	const vni, wrong, rounds = 7, 8, 20
	_, b := firstPair(t)
	server, guesser, other := b.gateways[0], netip.MustParseAddr("198.18.0.1"), netip.MustParseAddr("198.18.0.2")
	state, c := netops.GatewayState(server.config), server.config
	c.Plain = &netops.Plain{VNI: vni, Sources: []netip.Prefix{netip.PrefixFrom(guesser, 24).Masked()}}
	state.Firewall = netops.GatewayState(c).Firewall
	reach(t, server.kernel, state)
	listen := c.Tunnels[0].ListenPort
	emit, done := b.nodes[0].emitter(server.port(), server.hardware("eth0"))
	defer done()
	send := func(from netip.Addr, port uint16, vni byte) {
		require.NoError(t, emit(packet{protocol: unix.IPPROTO_UDP, source: from, target: c.Pod}.with(udp(port, listen, []byte{8, 0, 0, 0, 0, 0, vni, 0}))))
	}
	accepted := func(from netip.Addr) (n int) {
		all, err := server.kernel.nft.Senders(netops.Table, netops.Arrived(listen))
		require.NoError(t, err)
		for _, s := range all {
			if s.From.Addr() == from {
				n++
			}
		}
		return n
	}
	for i := range uint16(rounds) {
		for j := range uint16(500) {
			send(guesser, 10_000+j, wrong)
		}
		send(guesser, 1+i, vni)
	}
	send(other, 1, vni)
	wait.Until(t, "another address is accepted", answerWait, func() bool { return accepted(other) == 1 })
	if n := accepted(guesser); n > rounds/2 {
		t.Errorf("%d of %d right guesses are accepted", n, rounds)
	}
	wait.Until(t, "a sender is accepted once the guesses end", answerWait, func() bool {
		send(guesser, 4711, vni)
		return accepted(guesser) > 0
	})
}

// leastAnswered is the share of echoes that must be answered during a flood. The machine's queues drop some.
const leastAnswered = 0.9

// echoRequest returns an encoded echo request.
func echoRequest(t *testing.T, sequence uint32) []byte {
	t.Helper()
	b, err := echo.Message{Kind: echo.Request, Session: 1, Sequence: sequence, Size: 100}.AppendTo(nil)
	require.NoError(t, err)
	return b
}

// answerEchoes answers echoes at an address of the namespace, with the limit of a gateway's helper.
func (ns namespace) answerEchoes(t *testing.T, at netip.Addr) {
	t.Helper()
	ns.Inside(func() error {
		s, err := echo.Listen(echo.Config{
			Local: netip.AddrPortFrom(at, netops.EchoPort), Responder: &echo.Responder{Rate: netops.EchoesOfNodes, Burst: netops.EchoesOfNodes},
		})
		if err == nil {
			t.Cleanup(func() { _ = s.Close() })
		}
		return err
	})
}

// answered sends echoes and returns the share that is answered.
func (ns namespace) answered(t *testing.T, from netip.Addr, to netip.AddrPort, every time.Duration) float64 {
	t.Helper()
	const echoes = 40
	var c *net.UDPConn
	ns.Inside(func() (err error) {
		c, err = net.DialUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0)), net.UDPAddrFromAddrPort(to))
		return err
	})
	defer func() { _ = c.Close() }()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(echoes*every+2*time.Second)))
	answered := countAnswers(c, echoes)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for i := range uint32(echoes) {
		_, _ = c.Write(echoRequest(t, i))
		<-tick.C
	}
	return float64(<-answered) / echoes
}

// countAnswers counts what a socket receives until its deadline, at most so many.
func countAnswers(c net.Conn, most int) <-chan int {
	counted := make(chan int)
	go func() {
		n := 0
		for buf := make([]byte, 200); n < most; n++ {
			if _, err := c.Read(buf); err != nil {
				break
			}
		}
		counted <- n
	}()
	return counted
}

// expectAnswers sends echoes during a flood, which it ends: enough of them are answered.
func (ns namespace) expectAnswers(t *testing.T, f *flood, from, to netip.Addr, every time.Duration) {
	t.Helper()
	share := ns.answered(t, from, netip.AddrPortFrom(to, netops.EchoPort), every)
	t.Logf("%d packets a second; %.0f %% of the echoes answered", f.end(), 100*share)
	if share < leastAnswered {
		t.Errorf("%.0f %% of the echoes are answered", 100*share)
	}
}

// expectSession sends echoes by a client's tunnel during a flood of the server's port, and then renews its session:
// enough echoes are answered, and there is a new session in time. The flood ends before the renewal if it comes from
// the client's address: on a new port the client itself is an unknown sender there.
func (g *testGateway) expectSession(t *testing.T, f *flood, fromClient bool, within time.Duration) {
	t.Helper()
	to := g.config.Tunnels[0]
	share := g.answered(t, to.Address.Addr(), netip.AddrPortFrom(to.Peer, netops.EchoPort), 50*time.Millisecond)
	if fromClient {
		f.endShared()
	}
	begin := time.Now()
	g.renew()
	g.awaitTunnels()
	took := time.Since(begin)
	t.Logf("%d packets a second; %.0f %% of the echoes answered, a new session in %s", f.end(), 100*share, took)
	if share < leastAnswered {
		t.Errorf("%.0f %% of the client's echoes are answered", 100*share)
	}
	if took > within {
		t.Errorf("a new session took %s", took)
	}
}

// renew starts a handshake of a client's first tunnel from a new port.
func (g *testGateway) renew() {
	g.t.Helper()
	tunnel := g.tunnels[0]
	g.Inside(func() error { return tunnel.device.RenewAt(netip.MustParseAddrPort(tunnel.config.Endpoints[0])) })
}

// flood sends packets as fast as one processor can.
type flood struct {
	sent   atomic.Int64
	begin  time.Time
	stop   chan struct{}
	ended  sync.WaitGroup
	closed sync.Once
}

// startFlood sends a packet by a link until the test ends, and before each time calls change, unless it is nil. It
// returns when the flood has started.
func (ns namespace) startFlood(
	t *testing.T, link string, to net.HardwareAddr, packet []byte, change func(i int64),
) *flood {
	t.Helper()
	send, done := ns.emitter(link, to)
	t.Cleanup(done)
	f := &flood{stop: make(chan struct{}), begin: time.Now()}
	f.ended.Go(func() {
		for {
			select {
			case <-f.stop:
				return
			default:
				if i := f.sent.Add(1); change != nil {
					change(i)
				}
				_ = send(packet)
			}
		}
	})
	t.Cleanup(func() { f.end() })
	wait.Until(t, "a flood", answerWait, func() bool { return f.sent.Load() > 50_000 }) // more than any burst
	return f
}

// end stops a flood and returns the number of packets per second.
func (f *flood) end() int64 {
	f.closed.Do(func() { close(f.stop) })
	f.ended.Wait()
	return f.sent.Load() * int64(time.Second) / int64(time.Since(f.begin))
}

// endShared stops a flood, and waits until a limit that it shared with other senders has capacity again.
func (f *flood) endShared() {
	f.end()
	<-time.After(time.Second)
}

// port returns the link of a gateway pod on its node.
func (g *testGateway) port() string { return fmt.Sprintf("v%d", g.config.Pod.As4()[3]) }
