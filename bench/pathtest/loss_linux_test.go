package pathtest

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/wait"
)

const (
	// badWeather is the duration of a fault of the line.
	badWeather = 15 * time.Second
	// weatherRounds is the number of attempts: on a busy machine a helper may not run for two seconds, and renews its
	// tunnel. A renewal because of the line happens in each attempt.
	weatherRounds = 6
	// renewalSilence is the time without packets after which a tunnel is renewed.
	renewalSilence = 2 * time.Second
	// queue is the delay of datagrams to the client, in the second case. An answer is late by that, and by the second
	// until the next echo on an idle path; other packets are late by the queue only.
	queue = 1600 * time.Millisecond
	// renewedLog is the log message of a gateway that renews its tunnel.
	renewedLog = "tunnel renewed"
)

// TestLossIsNotDeath checks that on a line that loses or delays packets the tunnel keeps its session, and that a dead
// session is replaced. With -short, as in a slow guest, a helper that is stopped for seconds looks like a dead one:
// only recovery is tested.
func TestLossIsNotDeath(t *testing.T) {
	t.Parallel()
	a, b, underlay := twoClusters(t)
	l := newLine(t, underlay, netip.AddrPortFrom(a.NodeAddress(1), clusters.ServerPort))
	b.Endpoint = netip.AddrPortFrom(clusters.Outside, linePort)
	a.Connect(b.Cluster)
	b.Connect(a.Cluster)
	for _, weather := range []struct {
		name  string
		state health.State // of the peering meanwhile
		begin func() (end func())
	}{
		{"20 % loss each way", health.Degraded, func() func() {
			dropPackets(a.Nodes[0], tunnelPackets, "numgen random mod 100 < 20 drop")
			return func() { removeDrops(a.Nodes[0]) }
		}},
		{"a queue of more than 1.5 s", health.Healthy, func() func() {
			stop := download(t, a, b)
			l.setDelay(queue)
			return func() { l.setDelay(0); stop() }
		}},
	} {
		t.Run(weather.name, func(t *testing.T) {
			failed := 0 // rounds without a delay of the machine
			var state health.State
			var why string
			for range weatherRounds {
				late := lateness()
				awaitHealthy(a, b)
				before := [2]int{a.Gateways[0].Helper.Logged(renewedLog), b.Gateways[0].Helper.Logged(renewedLog)}
				end := weather.begin()
				timer := time.NewTimer(badWeather)
				<-timer.C
				renewed := [2]int{a.Gateways[0].Helper.Logged(renewedLog) - before[0], b.Gateways[0].Helper.Logged(renewedLog) - before[1]}
				state, why = b.judge()
				end()
				if lateFactor*late() < renewalSilence {
					failed++
				}
				t.Logf("renewals of server and client: %v; cluster b is %s (%s)", renewed, state, why)
				if testing.Short() || renewed == [2]int{} && state == weather.state {
					return
				}
			}
			if failed > weatherRounds/2 {
				t.Errorf("each time the tunnel was renewed, or the peering was not %s: it is %s (%s)", weather.state, state, why)
			}
		})
	}
	t.Run("the client's mapping is lost", func(t *testing.T) {
		for range faultRounds {
			late := lateness()
			awaitHealthy(a, b)
			renewed, begin := b.Gateways[0].Helper.Logged(renewedLog), time.Now()
			l.loseMapping()
			wait.Succeeds(t, joining, func() error {
				return b.Pods[0].Command(t.Context(), "ping", "-c", "1", "-W", "1", a.RemappedPod(0).String()).Run()
			})
			took, allowed := time.Since(begin), shownWithin+lateFactor*late()
			if b.Gateways[0].Helper.Logged(renewedLog) == renewed {
				t.Fatal("packets cross without a renewal: the mapping was not lost")
			}
			t.Logf("packets cross again after %.1f s", took.Seconds())
			if testing.Short() || took <= allowed {
				return
			}
		}
		t.Errorf("packets never crossed within %v and what the machine was late", shownWithin)
	})
}

// download sends datagrams from a pod of one cluster to one of the other, until stop is called.
func download(t *testing.T, from, to *testCluster) (stop func()) {
	t.Helper()
	const size, pause = 1200, 10 * time.Millisecond
	conn := dialIn(t, from.Pods[0], "udp4", netip.AddrPortFrom(to.RemappedPod(0), servicePort))
	ctx, cancel := context.WithCancel(context.Background())
	var sending sync.WaitGroup
	sending.Go(func() {
		every(ctx, pause, func() {
			_, _ = conn.Write(make([]byte, size)) // no receiver: errors do not matter
		})
	})
	return func() { cancel(); sending.Wait(); _ = conn.Close() }
}

// linePort is the port of the line for the client.
const linePort = 40000

// line is a path between two gateways: it carries datagrams of the client, from any of its addresses, to the server's
// endpoint and back. It can delay datagrams to the client, like a queue, or drop a client's, like a NAT that lost a
// mapping.
type line struct {
	near, far *net.UDPConn

	mu     sync.Mutex
	delay  time.Duration
	client netip.AddrPort // address of the last packet
	lost   netip.AddrPort // address whose packets are dropped
}

// newLine creates a line to a server's endpoint, in the namespace between the clusters.
func newLine(t *testing.T, underlay netns.Namespace, to netip.AddrPort) *line {
	t.Helper()
	l := &line{}
	underlay.Inside(func() (err error) {
		if l.near, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(clusters.Outside, linePort))); err != nil {
			return err
		}
		l.far, err = net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to))
		return err
	})
	var both sync.WaitGroup
	t.Cleanup(func() {
		_, _ = l.near.Close(), l.far.Close()
		both.Wait()
	})
	both.Go(func() {
		receive(l.near, func(b []byte, from netip.AddrPort) {
			if l.carries(from) {
				_, _ = l.far.Write(b) // an error refers to an earlier datagram
			}
		})
	})
	both.Go(func() {
		var waiting sync.WaitGroup
		defer waiting.Wait()
		receive(l.far, func(b []byte, _ netip.AddrPort) {
			to, delay := l.toClient()
			waiting.Add(1)
			time.AfterFunc(delay, func() {
				defer waiting.Done()
				_, _ = l.near.WriteToUDPAddrPort(b, to)
			})
		})
	})
	return l
}

// receive passes each datagram to a function, until the socket is closed.
func receive(from *net.UDPConn, handle func(b []byte, from netip.AddrPort)) {
	for {
		b := make([]byte, 2048)
		n, sender, err := from.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil { // otherwise an ICMP error for an earlier datagram
			handle(b[:n], sender)
		}
	}
}

// carries reports whether the line forwards packets from an address, and stores that address for answers.
func (l *line) carries(from netip.AddrPort) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if from == l.lost {
		return false
	}
	l.client = from
	return true
}

// toClient returns the destination of the next datagram, and its delay; no address while the client is lost.
func (l *line) toClient() (netip.AddrPort, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client == l.lost {
		return netip.AddrPort{}, 0
	}
	return l.client, l.delay
}

func (l *line) setDelay(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = d
}

// loseMapping drops all packets from and to the client's present address.
func (l *line) loseMapping() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = l.client
}
