//go:build linux

package gateway

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/choices"
	"liqonet.io/liqonet/netops/membership"
)

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
			e.device = device
			receive := func(of membership.Epoch) (newest membership.Epoch) {
				g.mu.Lock()
				e.from(of, time.Now())
				newest = e.far.Latest(time.Now())
				g.mu.Unlock()
				choices.Elapse(farPodReply + time.Millisecond)
				synctest.Wait()
				return newest
			}
			receive(latest)
			choices.Elapse(test.silent - farPodReply - time.Millisecond)
			if got := receive(test.of); got != test.newest {
				t.Errorf("the answer has epoch %d, want %d", got, test.newest)
			}
			if got := len(device.renewed); got != test.renewed {
				t.Errorf("%d sessions ended, want %d", got, test.renewed)
			}
		})
	}
}

// TestDriverChangesMeanwhile: an earlier pod of the peer's gateway sends just before the tunnel is closed, because its
// driver changes.
func TestDriverChangesMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := twoTunnels(1)
		e, device := g.tunnel(1), &farTunnel{from: netip.MustParseAddrPort("192.0.2.1:1")}
		e.device = device
		for _, pod := range []membership.Epoch{100, 99} {
			g.mu.Lock()
			e.from(pod, time.Now())
			g.mu.Unlock()
			synctest.Wait()
		}
		e.use(nil, false)
		choices.Elapse(farPodReply + time.Millisecond)
		synctest.Wait()
		if len(device.renewed) > 0 {
			t.Error("a closed tunnel is renewed")
		}
	})
}
