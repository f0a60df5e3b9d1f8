//go:build linux

package helper

import (
	"net/netip"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/netops/membership"
)

// TestWitnessFault checks what a witness reports, and that it reports each change once.
func TestWitnessFault(t *testing.T) {
	const ms, never = time.Millisecond, -1
	noGateway, noPeer := "no answer from the gateway", "no answer from nodes of the peer"
	for _, test := range []struct {
		name            string
		gateway, proven time.Duration // time since the last answers
		want            string
	}{
		{"all answer", 0, 0, ""},
		{"the gateway, just before the limit", health.GatewaySilence - ms, 0, ""},
		{"the gateway is silent", health.GatewaySilence, 0, noGateway},
		{"the peer, just before the limit", 0, health.ProofSilence - ms, ""},
		{"the peer is silent", 0, health.ProofSilence, noPeer},
		{"both are silent", health.GatewaySilence, health.ProofSilence, noGateway},
		{"no node of the peer has ever answered", 0, never, ""},
	} {
		bubble.Run(t, test.name, func(t *testing.T) {
			news := make(chan struct{}, 1)
			w := witness{news: news, lastAnswer: time.Now().Add(-test.gateway)}
			var proven time.Time
			if test.proven != never {
				proven = time.Now().Add(-test.proven)
			}
			w.check(false, proven)
			if reported := len(news) == 1; w.fault != test.want || reported != (test.want != "") {
				t.Errorf("fault %q, reported %t, want %q", w.fault, reported, test.want)
			}
			w.check(true, proven)
			if !w.asked || len(news) != 1 {
				t.Error("a request of the gateway is not reported")
			}
			<-news
			if w.check(true, proven); len(news) != 0 {
				t.Error("no change is reported")
			}
		})
	}
}

// TestLatestPodCounts checks which of the peer's pods a tunnel keeps to, by the epochs in echoes.
func TestLatestPodCounts(t *testing.T) {
	const latest = 100
	for _, test := range []struct {
		name    string
		of      membership.Epoch
		silent  time.Duration    // of the latest pod
		newest  membership.Epoch // in the answer
		renewed int              // sessions ended
	}{
		{"the latest pod", latest, 0, latest, 0},
		{"the latest pod, after a long time", latest, membership.PodSilence, latest, 0},
		{"a later pod", latest + 1, 0, latest + 1, 0},
		{"an earlier pod", latest - 1, 0, latest, 1},
		{"an earlier pod, just before the limit", latest - 1, membership.PodSilence - time.Millisecond, latest, 1},
		{"an earlier pod, the latest is gone", latest - 1, membership.PodSilence, latest - 1, 0},
		{"no epoch", 0, 0, latest, 0},
		{"no epoch, the latest is gone", 0, membership.PodSilence, 0, 0},
		{"an epoch that no pod can have", 1<<32 - 1, 0, latest, 0},
	} {
		bubble.Run(t, test.name, func(t *testing.T) {
			g, _ := twoTunnels(1)
			e, device := g.tunnel(1), &farTunnel{from: netip.MustParseAddrPort("192.0.2.1:1")}
			e.far.device = device
			receive := func(of membership.Epoch) (newest membership.Epoch) {
				e.mu.Lock()
				e.from(of, time.Now())
				newest = e.far.Latest(time.Now())
				e.mu.Unlock()
				elapse(farPodReply + time.Millisecond)
				return newest
			}
			receive(latest)
			elapse(test.silent - farPodReply - time.Millisecond)
			if got := receive(test.of); got != test.newest {
				t.Errorf("the answer has epoch %d, want %d", got, test.newest)
			}
			if got := len(device.renewed); got != test.renewed {
				t.Errorf("%d sessions ended, want %d", got, test.renewed)
			}
		})
	}
}
