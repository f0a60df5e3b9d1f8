package peering

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
)

// Each of these tests has another writer change a cluster at the moment at which a command is about to write what it
// has computed from an older state.

// must runs a command as another user does.
func must[O, R any](t *testing.T, do func(context.Context, O, progress.Reporter) (R, error), o O) {
	t.Helper()
	if _, err := do(t.Context(), o, &recorder{}); err != nil {
		t.Errorf("the other command: %v", err)
	}
}

// TestUpdateOfOthersStays: a connect without --update found no differences, and has nothing to write.
func TestUpdateOfOthersStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected(t)
		c := newConnector(connectOptions(a, b), &recorder{})
		for _, step := range []func(context.Context) (string, error){c.reach, c.discover, c.compare} {
			if _, err := step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		other := connectOptions(a, b)
		other.Update, other.MTU, other.AllowForward, other.Image = true, new(1300), new(true), "newer"
		must(t, Connect, other)
		var err error
		for _, step := range []func(context.Context) (string, error){c.install, c.settle, c.prepare, c.configure} {
			if _, err = step(t.Context()); err != nil {
				break
			}
		}
		if !errors.Is(err, inventory.ErrConflict) {
			t.Errorf("error %v", err)
		}
		for _, w := range []*world{a, b} {
			if f, err := inventory.Fabric(t.Context(), w.Cluster); err != nil || !f.AllowForward || peeringOf(t, w).MTU != 1300 {
				t.Errorf("cluster %s: fabric %+v, MTU %d, %v", w.Context, f, peeringOf(t, w).MTU, err)
			}
			for object, text := range contents(t, w) {
				if strings.Contains(text, "image: ") && !strings.Contains(text, "image: newer") {
					t.Errorf("cluster %s: %s has the older image again", w.Context, object)
				}
			}
		}
	})
}

// newWorldC is a third cluster.
func newWorldC() *world {
	return newWorld("c", worldNode{name: "c1", podCIDR: "10.244.1.0/24", address: "172.31.3.11"})
}

// TestConflict: a writer without a lock, such as kubectl, changes an object that a run has read and is about to write.
// The run ends with an error and reverts nothing; the next run completes the peering.
func TestConflict(t *testing.T) {
	foreign := inventory.Hide(wgtypes.Key{1})
	for name, c := range map[string]struct {
		kind, object string
		change       func(t *testing.T, a *world)
		overwritten  func(t *testing.T, a *world) bool // the change
	}{
		"record": {"ConfigMap", "peering-b", func(t *testing.T, a *world) {
			_, err := inventory.Swap(t.Context(), a.Cluster, records.PeeringName("b"), func(live *records.Peering) (records.Peering, error) {
				p := *live
				p.GatewayMode = records.ActiveStandby
				return p, nil
			})
			if err != nil {
				t.Error(err)
			}
		}, func(t *testing.T, a *world) bool { return peeringOf(t, a).GatewayMode != records.ActiveStandby }},
		"record that is removed": {"ConfigMap", "peering-b", func(t *testing.T, a *world) { removeObject(t, a, "configmaps", "peering-b") },
			func(_ *testing.T, a *world) bool { return storedPeering(a, "b").Name != "" }},
		"fabric": {"ConfigMap", "fabric", func(t *testing.T, a *world) {
			_, err := inventory.Swap(t.Context(), a.Cluster, records.FabricName, func(live *records.Fabric) (records.Fabric, error) {
				f := *live
				f.MTU = 1400
				return f, nil
			})
			if err != nil {
				t.Error(err)
			}
		}, func(t *testing.T, a *world) bool {
			f, err := inventory.Fabric(t.Context(), a.Cluster)
			return err != nil || f.MTU != 1400
		}},
		"fabric that is removed": {"ConfigMap", "fabric", func(t *testing.T, a *world) { removeObject(t, a, "configmaps", "fabric") },
			func(t *testing.T, a *world) bool {
				f, err := inventory.Fabric(t.Context(), a.Cluster)
				return err != nil || f != nil
			}},
		"keys": {"Secret", "peering-b", func(t *testing.T, a *world) {
			keys, err := inventory.NewKeys(foreign)
			if err == nil {
				_, err = a.kube.CoreV1().Secrets(a.Namespace).Create(t.Context(), inventory.KeysObject(a.Namespace, first("b"), keys), metav1.CreateOptions{})
			}
			if err != nil {
				t.Error(err)
			}
		}, func(t *testing.T, a *world) bool {
			k, err := inventory.ReadKeys(t.Context(), a.Cluster, first("b"))
			return err != nil || k.Preshared() != foreign()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := connected(t)
				if c.kind == "Secret" {
					removeObject(t, a, "secrets", "peering-b") // connect makes it again
				}
				o := connectOptions(a, b)
				o.Update, o.ClampMSS, o.AllowForward = true, new(false), new(true)
				before := contents(t, b)
				o.Local.Cluster = a.hooked(c.kind, c.object, func() { c.change(t, a) })
				_, err := Connect(t.Context(), o, &recorder{})
				if !errors.Is(err, inventory.ErrConflict) || !strings.Contains(err.Error(), c.object) || hint.Of(err) != "run this again" {
					t.Errorf("error %v, hint %q", err, hint.Of(err))
				}
				if c.overwritten(t, a) {
					t.Error("what the other writer did is overwritten")
				}
				for object := range before {
					if _, ok := contents(t, b)[object]; !ok {
						t.Errorf("cluster b: %s is gone", object)
					}
				}
				o.Local.Cluster = a.Cluster
				if _, err := Connect(t.Context(), o, &recorder{}); err != nil {
					t.Errorf("again: %v", err)
				}
				checkStands(t, a, b, 1, 1)
			})
		})
	}
}

// removeObject removes an object as kubectl does.
func removeObject(t *testing.T, w *world, resource, name string) {
	t.Helper()
	if err := w.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource(resource), w.Namespace, name); err != nil {
		t.Error(err)
	}
}

// TestVerifyKeepsWhatIsInstalledMeanwhile: the namespace that a look has made may be in use when it ends.
func TestVerifyKeepsWhatIsInstalledMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := twoWorlds()
		live(t, a)
		o := verifyOptions(a)
		o.Cluster = a.hooked("DaemonSet", "verify", func() {
			if _, err := initialised(t, a, nil); err != nil {
				t.Error(err)
			}
		})
		if _, err := removal.Reset(t.Context(), o, &recorder{}); err != nil {
			t.Fatal(err)
		}
		if left := a.left(t); !slices.Contains(left, "Namespace liqonet") {
			t.Errorf("the namespace of the installation is gone; left %v", left)
		}
	})
}
