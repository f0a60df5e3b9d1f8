//go:build linux

package helper

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops/echo"
)

// TestDrain: a gateway whose nodes go on sending drains for as long as it may, and not at all if nothing can come: it is the
// only one, or the peering is removed.
func TestDrain(t *testing.T) {
	for _, test := range []struct {
		name     string
		gateways int
		removed  bool
		want     time.Duration
	}{
		{"one of two", 2, false, drainMost},
		{"the only one", 1, false, 0},
		{"of a removed peering", 2, true, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := testView()
				for len(v.peering.Gateways) < test.gateways {
					v.peering.Gateways = append(v.peering.Gateways, v.peering.Gateways[0])
				}
				g, _ := testEchoes(v)
				l := &gatewayLoop{
					Gateway: Gateway{Env: Env{Namespace: testNamespace, Log: slog.New(slog.DiscardHandler)}, ID: firstGateway("b")},
					echoes:  g, peering: cache.NewStore(cache.MetaNamespaceKeyFunc),
				}
				l.served.Store(&v)
				if !test.removed {
					cm := &corev1.ConfigMap{}
					cm.Namespace, cm.Name = testNamespace, records.PeeringName("b")
					if err := l.peering.Add(cm); err != nil {
						t.Fatal(err)
					}
				}
				sending := time.NewTicker(time.Second)
				defer sending.Stop()
				ended := make(chan time.Duration)
				begin := time.Now()
				go func() { l.drain(t.Context()); ended <- time.Since(begin) }()
				for {
					g.answer(echoOf("10.80.0.7", echo.Report{Internal: v.nodes[0].Internal}))
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
