package pathtest

import (
	"fmt"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

// partition is a cut through two clusters with two gateways each.
type partition struct {
	name   string
	cut    func(a *testCluster) (heal func())
	state  health.State // of cluster a, while it lasts
	reason string
	lasts  time.Duration // at least
	share  int           // of a hundred packets that may be lost while it lasts
}

var partitions = []partition{
	{
		name: "the clusters from each other", state: health.Down, reason: "answered last", lasts: 5 * time.Second, share: 100,
		cut: func(a *testCluster) func() {
			for _, n := range a.nodes {
				lose(n, "udp dport 51840-51904; udp sport 51840-51904", "drop")
			}
			return func() { loseNoMore(a.nodes[:]...) }
		},
	},
	{
		name: "a gateway from the peer", state: health.Degraded, lasts: 5 * time.Second, share: 50,
		cut: func(a *testCluster) func() {
			lose(a.nodes[1], fmt.Sprintf("ip daddr %[1]s udp dport 51840-51848; ip saddr %[1]s udp sport 51840-51848", a.gateways[1].address()), "drop")
			return func() { loseNoMore(a.nodes[1]) }
		},
	},
	{
		// The peer sends packets for that node by this gateway nevertheless: half of the answers to it.
		name: "half of the nodes from a gateway", state: health.Degraded, reason: "no echo between gateway", lasts: 5 * time.Second, share: 50,
		cut: func(a *testCluster) func() {
			lose(a.nodes[0], fmt.Sprintf("ip daddr %[1]s %[2]s; ip saddr %[1]s %[2]s", a.gateways[1].address(), overlayPackets), "drop")
			return func() { loseNoMore(a.nodes[0]) }
		},
	},
}

// TestPartitions cuts parts of a peering off from each other. While that lasts, the state is the right one, and no more
// packets are lost than cross the cut; afterwards all cross soon. With -short, as in a slow guest, losses are only told.
func TestPartitions(t *testing.T) {
	t.Parallel()
	a, b := severalGateways(t, records.ActiveActive)
	// The second node, and the gateway on it, find the API server at a place of their own.
	a.gateways[1].helper.kill()
	a.nodeHelpers[1].kill()
	var cutAPI func()
	a.sockets[1], cutAPI = a.serveAPI()
	a.startNode(1)
	a.start(a.gateways[1])
	for _, p := range append(partitions, partition{
		name: "a gateway's node from the API server", state: health.Degraded, reason: "gateway 2", share: undisturbedLoss,
		cut: func(*testCluster) func() { cutAPI(); return func() {} },
	}) {
		t.Run(p.name, func(t *testing.T) {
			a.awaitState(health.Healthy, "")
			a.awaitAllUsed(time.Time{})
			traffic := startTraffic(t, a, b)
			traffic.lost(t)
			late := lateness()
			begin, before := time.Now(), traffic.count()
			heal := p.cut(a)
			a.awaitState(p.state, p.reason)
			<-time.After(p.lasts - time.Since(begin))
			during := traffic.count().minus(before)
			heal()
			healed := time.Now()
			traffic.lost(t)
			took, limit := time.Since(healed), shownWithin+lateFactor*late()
			t.Logf("%d of %d packets lost in %.1f s; all cross %.1f s later", during.lost(), during.sent, healed.Sub(begin).Seconds(), took.Seconds())
			if !testing.Short() && (during.lost()*100 > int64(p.share)*during.sent || took > limit) {
				t.Errorf("want at most %d %% lost, and all to cross after %v", p.share, limit)
			}
		})
	}
}
