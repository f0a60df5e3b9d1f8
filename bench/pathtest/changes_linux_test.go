package pathtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// TestRolesChangePlaces makes the client of a peering the server by changing the records. The tunnels get other
// addresses and, with several gateways, other networks. The records also change the implementation of WireGuard. All
// tunnels are answered again, by the same helpers, and nothing of it counts as drift.
func TestRolesChangePlaces(t *testing.T) {
	t.Parallel()
	k := combinations()[0]
	a, b := severalGateways(t, records.ActiveActive)
	f := startFlood(a, b)
	for _, n := range a.nodes {
		n.Run("nft", "delete table ip services")
	}
	a.serves, b.serves = false, true
	for _, g := range b.gateways {
		b.balance(g)
	}
	begin, other := time.Now(), k
	other.WireGuard = records.Userspace
	if k == other {
		other.WireGuard = records.Auto
	}
	a.rewrite(a.peering(other, b))
	b.rewrite(b.peering(other, a))
	a.awaitAnswered(begin)
	b.awaitAnswered(begin)
	f.await(t)
	for _, g := range slices.Concat(a.gateways, b.gateways) {
		if n := g.helper.Logged("drift detected"); n > 0 {
			t.Errorf("%s counts its own changes as drift, %d times", g.pod(), n)
		}
	}
	lost, sent, silent := f.stop()
	t.Logf("%.1f s until all tunnels were answered; %d of %d packets lost, %.2f s at most without any", time.Since(begin).Seconds(), lost, sent, silent.Seconds())
}

// awaitAnswered waits until every tunnel of every gateway has been answered since a time.
func (c *testCluster) awaitAnswered(since time.Time) {
	c.t.Helper()
	for _, g := range c.gateways {
		silent := fmt.Errorf("gateway %d of %s has no status", g.number, c.name)
		wait.Succeeds(c.t, joining, func() error {
			s, err := c.statusOf(g)
			if err != nil {
				return silent // the gateway rewrites it
			}
			for i, tunnel := range s.AllTunnels() {
				if !tunnel.LastEcho.After(since) {
					silent = fmt.Errorf("gateway %d of %s: no echo by tunnel %d since the change: %+v, failed: %v", g.number, c.name, i+1, tunnel, s.Failed)
					c.renewStatus(g)
					return silent
				}
			}
			return nil
		})
	}
}
