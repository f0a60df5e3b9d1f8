package pathtest

import (
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/testbed/wait"
)

const (
	// badWeather is how long a line is bad in a test.
	badWeather = 15 * time.Second
	// weatherRounds is how often a line may be bad: on a busy machine a helper may not run for two seconds, and renews
	// its tunnel. A tunnel that is renewed because of the line is renewed each time.
	weatherRounds = 6
	// renewalSilence is after how long without packets a tunnel is renewed.
	renewalSilence = 2 * time.Second
	// queue is how long what goes to the client waits, in the second of them. An answer is late by that, and by the
	// second that passes on a calm path until the next echo; what else goes there is late by the queue only.
	queue = 1600 * time.Millisecond
	// renewedLog is what a gateway logs when it renews its tunnel.
	renewedLog = "tunnel renewed"
)

// TestLossIsNotDeath: on a line that loses packets or delays them the tunnel keeps its session, and one that is dead
// gets another one. What is slow is not lost. With -short, as in a slow guest, a helper that stands still for seconds
// looks like a dead one: there only recovery is tested.
func TestLossIsNotDeath(t *testing.T) {
	t.Parallel()
	k := combinations()[0]
	a, b, underlay := twoClusters(t)
	l := newLine(t, underlay, netip.AddrPortFrom(a.node(1), serverPort))
	b.endpoint = netip.AddrPortFrom(outside, linePort)
	a.connect(k, b)
	b.connect(k, a)
	for _, weather := range []struct {
		name  string
		state health.State // of the peering meanwhile
		begin func() (end func())
	}{
		{"20 % loss each way", health.Degraded, func() func() {
			lose(a.nodes[0], tunnelPackets, "numgen random mod 100 < 20 drop")
			return func() { loseNoMore(a.nodes[0]) }
		}},
		{"a queue of more than 1.5 s", health.Healthy, func() func() {
			stop := download(t, a, b)
			l.setDelay(queue)
			return func() { l.setDelay(0); stop() }
		}},
	} {
		t.Run(weather.name, func(t *testing.T) {
			failed := 0 // rounds in which the machine was calm
			var state health.State
			var why string
			for range weatherRounds {
				late := lateness()
				a.awaitState(health.Healthy, "")
				b.awaitState(health.Healthy, "")
				before := [2]int{a.gateways[0].helper.logged(renewedLog), b.gateways[0].helper.logged(renewedLog)}
				end := weather.begin()
				timer := time.NewTimer(badWeather)
				<-timer.C
				renewed := [2]int{a.gateways[0].helper.logged(renewedLog) - before[0], b.gateways[0].helper.logged(renewedLog) - before[1]}
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
			a.awaitState(health.Healthy, "")
			b.awaitState(health.Healthy, "")
			renewed, begin := b.gateways[0].helper.logged(renewedLog), time.Now()
			l.forget()
			wait.Succeeds(t, joining, func() error {
				return b.pods[0].Command(t.Context(), "ping", "-c", "1", "-W", "1", a.seenPod(0).String()).Run()
			})
			took, allowed := time.Since(begin), shownWithin+lateFactor*late()
			if b.gateways[0].helper.logged(renewedLog) == renewed {
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
	var conn *net.UDPConn
	if err := from.pods[0].Do(func() (err error) {
		conn, err = net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to.seenPod(0), servicePort)))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				_, _ = conn.Write(make([]byte, size)) // nobody listens: errors of the far end are of no matter
			}
		}
	})
	return func() { close(done); sending.Wait(); _ = conn.Close() }
}
