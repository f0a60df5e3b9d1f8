package peering

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/peering/desired"
	"liqonet.io/liqonet/internal/seconds"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestConnectMeasuresHops: the MTU fits the narrowest hop, wherever it is, and both records contain it.
func TestConnectMeasuresHops(t *testing.T) {
	for name, c := range map[string]struct {
		narrow func(a, b *fakecluster.Cluster)
		want   int
		hop    string
	}{
		"as wide as the links":    {func(_, _ *fakecluster.Cluster) {}, 1420, ""},
		"between the gateways":    {func(a, b *fakecluster.Cluster) { a.GatewayMTU, b.GatewayMTU = 1460, 1460 }, 1380, "between the gateways"},
		"nodes of a":              {func(a, _ *fakecluster.Cluster) { a.OverlayMTU = 1400 }, 1350, "from nodes of a to their gateway"},
		"nodes of b, little":      {func(_, b *fakecluster.Cluster) { b.OverlayMTU = 1480 }, 1420, ""},
		"a server that says more": {func(a, _ *fakecluster.Cluster) { a.GatewayMTU = 1460 }, 1380, "between the gateways"},
		"no answer":               {func(a, b *fakecluster.Cluster) { a.GatewayMTU, b.GatewayMTU, a.OverlayMTU, b.OverlayMTU = 0, 0, 0, 0 }, 1420, ""},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			a, b := fakecluster.Pair()
			c.narrow(a, b)
			fakecluster.Run(t, a, b)
			recorder := &fakecluster.Recorder{}
			got, err := Connect(t.Context(), connectOptions(a, b), recorder)
			require.NoError(t, err)
			if got.MTU != c.want || a.Peering(t).MTU != c.want || b.Peering(t).MTU != c.want {
				t.Errorf("MTU %d, documents %d and %d, want %d", got.MTU, a.Peering(t).MTU, b.Peering(t).MTU, c.want)
			}
			var narrow []string
			for _, h := range desired.Narrow(got.Hops) {
				narrow = append(narrow, h.Name)
			}
			for _, h := range got.Hops[:4] { // of nodes
				if h.Node == "" && h.Size > 0 {
					t.Errorf("hop without node: %+v", h)
				}
			}
			if strings.Join(narrow, ", ") != c.hop {
				t.Errorf("narrower than the links: %v of %+v, want %q", narrow, got.Hops, c.hop)
			}
			warned := slices.ContainsFunc(recorder.Lines(), func(line string) bool { return strings.Contains(line, "path MTU unknown between the gateways") })
			if warned != (a.GatewayMTU == 0) {
				t.Errorf("output %q", recorder.Lines())
			}
			again, err := Connect(t.Context(), connectOptions(a, b), recorder)
			if err != nil || again.Changed || again.MTU != c.want || again.Took > seconds.Duration(2*time.Second) {
				t.Errorf("once more: %+v, %v: want no change, at once", again, err)
			}
		})
	}
}

// TestConnectAdaptsToHops: a hop that becomes narrower later is a difference, which an update applies.
func TestConnectAdaptsToHops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected(t)
		for _, w := range []*fakecluster.Cluster{a, b} {
			w.Set(func() { w.GatewayMTU = 1400 })
		}
		<-time.After(time.Second)
		o := connectOptions(a, b)
		_, err := Connect(t.Context(), o, &fakecluster.Recorder{})
		assert.ErrorContains(t, "connect", err, "MTU   1420 (measured) -> 1320 (measured)")
		o.Update = true
		if got, err := Connect(t.Context(), o, &fakecluster.Recorder{}); err != nil || got.MTU != 1320 || a.Peering(t).MTU != 1320 || b.Peering(t).MTU != 1320 {
			t.Errorf("update: %+v, %v", got, err)
		}
	})
}

// TestConnectKeepsTheUsersMTU: --mtu is used, with a warning that names a hop which it does not fit.
func TestConnectKeepsTheUsersMTU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.Pair()
		a.GatewayMTU, b.GatewayMTU = 1400, 1400
		fakecluster.Run(t, a, b)
		o, recorder := connectOptions(a, b), &fakecluster.Recorder{}
		o.MTU = new(1340)
		if got, err := Connect(t.Context(), o, recorder); err != nil || got.MTU != 1340 || b.Peering(t).MTU != 1340 {
			t.Errorf("%+v, %v", got, err)
		}
		const want = "warn MTU 1340 exceeds the path MTU: between the gateways 1400 (use --mtu 1320 or less)"
		if !slices.Contains(recorder.Lines(), want) {
			t.Errorf("output %q, want %q", recorder.Lines(), want)
		}
	})
}

// TestMTURises: the MTU rises after the nodes with the narrowest links are removed, only with --update, and not while a
// node is down.
func TestMTURises(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, a *fakecluster.Cluster)
		update bool
		want   int // MTU of the links of a
	}{
		{"a narrow node leaves", func(t *testing.T, a *fakecluster.Cluster) { a.Leave(t, "a2") }, true, 1500},
		{"without --update", func(t *testing.T, a *fakecluster.Cluster) { a.Leave(t, "a2") }, false, 1450},
		{"a narrow node is away", func(t *testing.T, a *fakecluster.Cluster) { a.UpdateNode(t, away(nodeA2)) }, true, 1450},
		{"a node has not reported", func(t *testing.T, a *fakecluster.Cluster) {
			a.Leave(t, "a2")
			a.Set(func() { a.NotReporting["a3"] = true })
			a.Join(t, nodeA3)
		}, true, 1450},
		{"a link becomes wider", func(_ *testing.T, a *fakecluster.Cluster) { a.Set(func() { a.LinkMTU["a2"] = 1480 }) }, true, 1480},
	} {
		bubble.Run(t, tt.name, func(t *testing.T) {
			a, b := fakecluster.Pair()
			a.LinkMTU = map[string]int{"a2": 1450}
			fakecluster.Run(t, a, b)
			o := connectOptions(a, b)
			if got, err := Connect(t.Context(), o, &fakecluster.Recorder{}); err != nil || got.MTU != 1370 {
				t.Fatalf("MTU %d, %v", got.MTU, err)
			}
			tt.change(t, a)
			<-time.After(time.Second)
			o.Update = tt.update
			plan, err := PlanInit(t.Context(), InitOptions{Side: o.Local, Installation: o.Installation}, &fakecluster.Recorder{})
			if rises := strings.Contains(fmt.Sprint(plan), "mtu: "); err != nil || rises != (tt.update && tt.want > 1450) {
				t.Errorf("plan of init: %v, %v", plan, err)
			}
			fakecluster.Must(t, Connect, o)
			f, err := inventory.Fabric(t.Context(), a.Cluster)
			require.NoError(t, err)
			if p := a.Peering(t).MTU; f.MTU != tt.want || p != tt.want-80 || b.Peering(t).MTU != p {
				t.Errorf("MTU of the links %d, want %d; of the peering %d and %d", f.MTU, tt.want, p, b.Peering(t).MTU)
			}
		})
	}
}
