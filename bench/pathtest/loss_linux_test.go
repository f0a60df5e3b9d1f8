package pathtest

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/testbed/clusters"
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
