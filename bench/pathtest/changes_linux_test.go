package pathtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/records"
)

// TestRolesChangePlaces makes the client of a peering the server by changing the records. The tunnels get other
// addresses and, with several gateways, other networks. The records also change the implementation of WireGuard. All
// tunnels are answered again, by the same helpers, and nothing of it counts as drift.
func TestRolesChangePlaces(t *testing.T) {
	t.Parallel()
	a, b := severalGateways(t, records.ActiveActive)
	f := startFlood(a, b)
	for _, n := range a.Nodes {
		n.Run("nft", "delete table ip services")
	}
	a.Serves, b.Serves = false, true
	for _, g := range b.Gateways {
		b.Forward(g)
	}
	begin, wireGuard := time.Now(), records.Userspace
	if a.Kinds.WireGuard == wireGuard {
		wireGuard = records.Auto
	}
	a.Kinds.WireGuard, b.Kinds.WireGuard = wireGuard, wireGuard
	a.Rewrite(a.Record(b.Cluster))
	b.Rewrite(b.Record(a.Cluster))
	a.awaitAnswered(begin)
	b.awaitAnswered(begin)
	f.await(t)
	for _, g := range slices.Concat(a.Gateways, b.Gateways) {
		if n := g.Helper.Logged("drift detected"); n > 0 {
			t.Errorf("%s counts its own changes as drift, %d times", g.Pod(), n)
		}
	}
	lost, sent, silent := f.stop()
	t.Logf("%.1f s until all tunnels were answered; %d of %d packets lost, %.2f s at most without any", time.Since(begin).Seconds(), lost, sent, silent.Seconds())
}

// awaitAnswered waits until every tunnel of every gateway has been answered since a time.
func (c *testCluster) awaitAnswered(since time.Time) {
	c.t.Helper()
	for _, g := range c.Gateways {
		c.AwaitStatus(g, func(s records.Status) error {
			for i, tunnel := range s.AllTunnels() {
				if !tunnel.LastEcho.After(since) {
					c.RenewStatus(g)
					return fmt.Errorf("no echo by tunnel %d since the change: %+v, failed: %v", i+1, tunnel, s.Failed)
				}
			}
			return nil
		})
	}
}
