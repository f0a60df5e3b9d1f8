package pathtest

import (
	"fmt"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

// partition cuts links in two clusters with two gateways each.
type partition struct {
	name   string
	cut    func(a *testCluster) (heal func())
	state  health.State // of cluster a during the partition
	reason string
	lasts  time.Duration // minimum
	share  int           // maximum loss during the partition, in percent
	// around is whether a path around the partition exists.
	around bool
}

// aroundWithin is the time until all packets go around a partition: a gateway counts the nodes that it has reached
// within 0.8 s, and is left when it has reached fewer than another one for a second.
const aroundWithin = 3 * time.Second

var partitions = []partition{
	{
		name: "the clusters from each other", state: health.Down, reason: "answered last", lasts: 5 * time.Second, share: 100,
		cut: func(a *testCluster) func() {
			for _, n := range a.Nodes {
				dropPackets(n, "meta l4proto { tcp, udp } th dport 51840-51904; meta l4proto { tcp, udp } th sport 51840-51904", "drop")
			}
			return func() { removeDrops(a.Nodes[:]...) }
		},
	},
	{
		name: "a gateway from the peer", state: health.Degraded, lasts: 5 * time.Second, share: 50,
		cut: func(a *testCluster) func() {
			dropPackets(a.Nodes[1], fmt.Sprintf("ip daddr %[1]s meta l4proto { tcp, udp } th dport 51840-51904; ip saddr %[1]s meta l4proto { tcp, udp } th sport 51840-51904", a.Gateways[1].Address()), "drop")
			return func() { removeDrops(a.Nodes[1]) }
		},
	},
	{
		name: "half of the nodes from a gateway", state: health.Degraded, reason: "no echo between gateway", share: 30, around: true,
		cut: func(a *testCluster) func() {
			dropPackets(a.Nodes[0], fmt.Sprintf("ip daddr %[1]s %[2]s; ip saddr %[1]s %[2]s", a.Gateways[1].Address(), overlayPackets), "drop")
			return func() { removeDrops(a.Nodes[0]) }
		},
	},
	{
		name: "half of the nodes from what a gateway sends", state: health.Degraded, reason: "no answer from the gateway", share: 30, around: true,
		cut: func(a *testCluster) func() {
			dropPackets(a.Nodes[0], fmt.Sprintf("ip saddr %s %s", a.Gateways[1].Address(), overlayPackets), "drop")
			return func() { removeDrops(a.Nodes[0]) }
		},
	},
}

// forMinutes extends the partition beyond the life of a WireGuard session, three minutes, and the time that Kubernetes
// waits for a node. With -short it lasts as long as the others.
func (p partition) forMinutes() partition {
	p.name += " for minutes"
	if !testing.Short() {
		p.lasts = 5 * time.Minute
	}
	return p
}

// TestPartitions cuts parts of a peering off from each other, for five seconds and some for five minutes. During a
// partition the state is correct, and no more packets are lost than cross the cut; if there is a path around it, none
// after a moment. Afterwards all cross soon. With -short, as in a slow guest, losses are only logged.
func TestPartitions(t *testing.T) {
	t.Parallel()
	a, b := severalGateways(t, records.ActiveActive)
	// The second node, and the gateway on it, use a socket of the API server of their own.
	a.Gateways[1].Helper.Kill()
	a.NodeHelpers[1].Kill()
	var cutAPI func()
	a.Sockets[1], cutAPI = a.ServeAPI()
	noAPI := partition{
		name: "a gateway's node from the API server", state: health.Degraded, reason: "gateway 2", lasts: 5 * time.Second, share: undisturbedLoss,
		cut: func(a *testCluster) func() {
			cutAPI()
			return func() { cutAPI = a.ServeAPIAt(a.Sockets[1]) }
		},
	}
	a.StartNode(1)
	a.Start(a.Gateways[1])
	for _, p := range append(partitions, noAPI, partitions[0].forMinutes(), noAPI.forMinutes()) {
		t.Run(p.name, func(t *testing.T) {
			a.awaitState(health.Healthy, "")
			a.awaitAllUsed(time.Time{})
			pods := startTraffic(t, a, b)
			pods.lost(t)
			late := lateness()
			var floods []*traffic
			if p.around {
				floods = append(floods, startFlood(a, b), startFlood(b, a))
			}
			begin, before := time.Now(), pods.count("")
			heal := p.cut(a)
			a.awaitState(p.state, p.reason)
			shown := time.Since(begin)
			for _, f := range floods {
				f.await(t)
			}
			<-time.After(p.lasts - time.Since(begin))
			a.awaitState(p.state, p.reason)
			during := pods.count("").minus(before)
			longest := time.Duration(0)
			for _, f := range floods {
				lost, sent, silent := f.stop()
				t.Logf("between other addresses %d of %d packets lost, %.2f s at most without any", lost, sent, silent.Seconds())
				longest = max(longest, silent)
			}
			atHeal, lostAtHeal := pods.count(""), pods.knownLost()
			if p.share != undisturbedLoss {
				lostAtHeal = atHeal.lost() // packets in flight are lost too, or few
			}
			heal()
			healed := time.Now()
			pods.lost(t)
			took, allowed := time.Since(healed), lateFactor*late()
			limit := shownWithin + allowed
			if !testing.Short() && longest > aroundWithin+allowed {
				t.Errorf("want at most %v without any packet", aroundWithin+allowed)
			}
			a.awaitState(health.Healthy, "")
			after := pods.count("").minus(atHeal).sent
			lostAfter := max(pods.lost(t)-lostAtHeal, 0)
			t.Logf("%s after %.1f s; %d of %d packets lost in %.1f s; all cross %.1f s later, healthy after %.1f s, %d of %d packets lost until then",
				p.state, shown.Seconds(), during.lost(), during.sent, healed.Sub(begin).Seconds(), took.Seconds(), time.Since(healed).Seconds(), lostAfter, after)
			if !testing.Short() && (during.lost()*100 > p.share*during.sent || took > limit) {
				t.Errorf("want at most %d %% lost, and all to cross after %v", p.share, limit)
			}
			if !testing.Short() && p.share == undisturbedLoss && lostAfter*100 > undisturbedLoss*after {
				t.Errorf("want at most %d %% lost once the API server is back", undisturbedLoss)
			}
		})
	}
}
