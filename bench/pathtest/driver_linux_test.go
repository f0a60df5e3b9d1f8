package pathtest

import (
	"fmt"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/records"
)

// TestDriverChanges takes the encryption from a peering's tunnels and gives it back by changing the records, while
// packets flow. The helpers are the same ones.
func TestDriverChanges(t *testing.T) {
	t.Parallel()
	a, b := severalGateways(t, records.ActiveActive)
	f := startFlood(a, b)
	encrypted := a.Kinds.WireGuard
	for _, kind := range []records.Implementation{records.Unencrypted, records.Userspace, records.Unencrypted, encrypted} {
		begin := time.Now()
		a.Kinds.WireGuard, b.Kinds.WireGuard = kind, kind
		for _, n := range a.Nodes {
			n.Run("nft", "delete table ip services")
		}
		for _, g := range a.Gateways { // without encryption, sources are unchanged
			a.Forward(g)
		}
		a.Rewrite(a.Record(b.Cluster))
		b.Rewrite(b.Record(a.Cluster))
		a.awaitAnswered(begin)
		b.awaitAnswered(begin)
		for _, g := range a.Gateways {
			a.AwaitStatus(g, func(s records.Status) error {
				if s.Implementation != kind {
					return fmt.Errorf("tunnels of %s, want %s", s.Implementation, kind)
				}
				return nil
			})
		}
		f.await(t)
		t.Logf("%.1f s until all tunnels of %s were answered", time.Since(begin).Seconds(), kind)
	}
	lost, sent, silent := f.stop()
	t.Logf("%d of %d packets lost, %.2f s at most without any", lost, sent, silent.Seconds())
}
