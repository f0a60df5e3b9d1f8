package peering

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

// watchReplaced notes whether the second gateway of a peering has a tunnel when the first one gets another image.
func watchReplaced(w *world, peering string) (beside func() (is, seen bool)) {
	var is, seen bool
	second := records.GatewayID{Peering: peering, Number: 2}
	w.kube.PrependReactor("patch", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchActionImpl)
		if patch.Name == first(peering).Name() && strings.Contains(string(patch.Patch), "liqonet:2") && len(patch.PatchOptions.DryRun) == 0 && !seen {
			is, seen = w.pods.carries(w, second), true
		}
		return false, nil, nil
	})
	return func() (bool, bool) { return is, seen }
}

// TestOnlyGatewayReplaced: packets cross by a second gateway before the only one of a cluster gets another image, and it goes afterwards.
func TestOnlyGatewayReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		port   uint16 // where the client reaches the server; 0: the Service's
		broken bool   // no packets cross before, nor for a while
		beside bool   // want
	}{
		"healthy":                 {beside: true},
		"a port that is the only": {port: 4000},
		"broken":                  {broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := twoWorlds()
				live(t, a, b)
				o := connectOptions(a, b)
				if c.port != 0 {
					o.ClientPort = &c.port
				}
				if _, err := Connect(t.Context(), o, &recorder{}); err != nil {
					t.Fatal(err)
				}
				if c.broken {
					a.set(func() { a.silent, a.pace = first("b"), slowly })
					b.set(func() { b.pace = slowly })
					time.Sleep(health.Life(health.ReportEvery)) //nolint:forbidigo // in a bubble of synctest this advances the clock and waits for nothing
					defer time.AfterFunc(replaceTime, func() { a.set(func() { a.silent = records.GatewayID{} }) }).Stop()
				}
				replaced := watchReplaced(b, "a")
				o.Image, o.Update = "liqonet:2", true
				got, err := Connect(t.Context(), o, &recorder{})
				if err != nil {
					t.Fatal(err)
				}
				if beside, seen := replaced(); !seen || beside != c.beside {
					t.Errorf("replaced: %t; a second gateway had a tunnel: %t, want %t", seen, beside, c.beside)
				}
				if !got.Changed {
					t.Error("no changes in the result")
				}
				for _, w := range []*world{a, b} {
					if g := peeringOf(t, w).Gateways; len(g) != 1 || g[0].Temporary {
						t.Errorf("cluster %s: gateways %+v", w.Context, g)
					}
				}
			})
		})
	}
}

// TestSecondGatewayWithoutRoom: a second gateway that never carries packets delays an update, does not prevent it, and goes.
func TestSecondGatewayWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoWorlds()
		live(t, a, b)
		o := connectOptions(a, b)
		if _, err := Connect(t.Context(), o, &recorder{}); err != nil {
			t.Fatal(err)
		}
		a.set(func() { a.silent, a.pace = records.GatewayID{Peering: "b", Number: 2}, slowly })
		b.set(func() { b.pace = slowly })
		o.Image, o.Update = "liqonet:2", true
		r := &recorder{}
		if _, err := Connect(t.Context(), o, r); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(r.said(), "\n"), "no second gateway carries packets") {
			t.Errorf("notes %q", r.said())
		}
		checkStands(t, a, b, 1, 1)
	})
}
