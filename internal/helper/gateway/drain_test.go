//go:build linux

package gateway

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	tools "k8s.io/client-go/tools/cache"

	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/netops/echo"
)

// TestDrain checks that a gateway whose nodes keep sending drains until its limit, and ends immediately if no packets
// can come, because the peering is removed, or if it has another pod, like the only gateway of a drained node.
func TestDrain(t *testing.T) {
	for _, test := range []struct {
		name     string
		gateways int
		answered bool // its tunnel is answered
		removed  bool
		recorded string // pod of the gateway in its ConfigMap
		want     time.Duration
	}{
		{"one of two", 2, true, false, "here", drainMost},
		{"the only one", 1, true, false, "here", successionMost},
		{"the only one, not recorded yet", 1, true, false, "", successionMost},
		{"the only one, with a successor", 1, true, false, "there", 0},
		{"the only one, without a peer", 1, false, false, "here", 0},
		{"of a removed peering", 2, true, true, "here", 0},
		{"the only one of a removed peering", 1, true, true, "here", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := testView()
				for len(v.peering.Gateways) < test.gateways {
					v.peering.Gateways = append(v.peering.Gateways, v.peering.Gateways[0])
				}
				g, _ := testEchoes(v)
				l := &loop{
					Helper: Helper{Env: helper.Env{Namespace: sample.Namespace, Log: slog.New(slog.DiscardHandler)}, ID: sample.FirstGateway("b"), Pod: "here"},
					echoes: g, peering: tools.NewStore(tools.MetaNamespaceKeyFunc), location: tools.NewStore(tools.MetaNamespaceKeyFunc),
				}
				l.served.Store(&v)
				if test.answered {
					g.tunnel(1).answeredBy(echo.Message{Content: echo.Content{Unused: true}}, 0)
				}
				if !test.removed {
					cm := &corev1.ConfigMap{}
					cm.Namespace, cm.Name = sample.Namespace, records.PeeringName("b")
					require.NoError(t, l.peering.Add(cm))
				}
				if test.recorded != "" {
					require.NoError(t, l.location.Add(locationOf(t, test.recorded, 1)))
				}
				sending := time.NewTicker(time.Second)
				defer sending.Stop()
				ended := make(chan time.Duration)
				begin := time.Now()
				go func() { l.drain(t.Context()); ended <- time.Since(begin) }()
				for {
					g.answer(echoOf("10.80.0.7", echo.Report{Node: 7}))
					select {
					case <-sending.C:
						continue
					case after := <-ended:
						if after != test.want {
							t.Errorf("ended after %s, want %s", after, test.want)
						}
						return
					}
				}
			})
		})
	}
}
