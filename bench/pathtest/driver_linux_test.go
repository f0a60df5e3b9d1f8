package pathtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/netops"
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

// TestPortStays: a client's tunnel without encryption has another port after a renewal, and keeps its link when the
// helper is replaced.
func TestPortStays(t *testing.T) {
	t.Parallel()
	k := combinations()[0]
	k.WireGuard, k.Transport = records.Unencrypted, records.UDP
	a, b, _ := clustersOf(t, k)
	connectBoth(a, b)
	client := b.Gateways[0]
	link := func() string { return client.Run("ip", "-d", "-o", "link", "show", "dev", netops.TunnelLink(1)) }
	before := link()
	dropPackets(a.Nodes[0], tunnelPackets, "drop")
	wait.Until(t, "another port after a renewal", joining, func() bool {
		out, err := client.Command(t.Context(), "ip", "-d", "-o", "link", "show", "dev", netops.TunnelLink(1)).Output()
		return err == nil && len(out) > 0 && dstPort(string(out)) != dstPort(before)
	})
	removeDrops(a.Nodes[0])
	b.awaitAnswered(time.Now())
	before = link()
	client.Helper.Kill()
	b.Start(client)
	b.awaitAnswered(time.Now())
	if after := link(); dstPort(after) != dstPort(before) || strings.Fields(after)[0] != strings.Fields(before)[0] {
		t.Errorf("another link after a restart:\n%s\nbefore:\n%s", after, before)
	}
}

// dstPort returns the port on which a VXLAN link listens, from the output of ip.
func dstPort(link string) string {
	_, rest, _ := strings.Cut(link, "dstport ")
	port, _, _ := strings.Cut(rest, " ")
	return port
}
