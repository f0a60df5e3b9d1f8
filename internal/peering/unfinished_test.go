package peering

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/progress"
)

// interruptedAt runs a connect that is interrupted when it is about to write an object of cluster a, and returns what
// it said.
func interruptedAt(t *testing.T, a, b *world, kind, name string) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o, r := connectOptions(a, b), &recorder{}
	o.Remote.Cluster = b.apart()
	o.Local.Cluster = a.hooked(kind, name, cancel)
	if _, err := Connect(ctx, o, r); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	return r.said()
}

// staysWhile reports objects of two clusters that are gone after something happened.
func staysWhile(t *testing.T, a, b *world, happens func()) {
	t.Helper()
	before := [2]map[string]string{contents(t, a), contents(t, b)}
	happens()
	for i, w := range []*world{a, b} {
		now := contents(t, w)
		for object := range before[i] {
			if _, ok := now[object]; !ok {
				t.Errorf("cluster %s: %s is gone", w.Context, object)
			}
		}
	}
}

// TestFailureKeepsWhatOthersMake: a second connect that is interrupted removes nothing of the first one, which still
// runs.
func TestFailureKeepsWhatOthersMake(t *testing.T) {
	for name, at := range map[string][2]string{
		"with keys":                      {"Deployment", "gateway-b"},
		"where the client has no record": {"ConfigMap", "peering-b"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := twoWorlds()
				live(t, a, b)
				o := connectOptions(a, b)
				o.Remote.Cluster = b.apart()
				o.Local.Cluster = a.hooked(at[0], at[1], func() {
					staysWhile(t, a, b, func() {
						if said := interruptedAt(t, a, b, at[0], at[1]); !strings.Contains(strings.Join(said, "\n"), `peering "b" stays`) {
							t.Errorf("said %q", said)
						}
					})
				})
				if _, err := Connect(t.Context(), o, &recorder{}); err != nil {
					t.Fatal(err)
				}
				checkStands(t, a, b, 1, 1)
			})
		})
	}
}

// TestTwoBegin: of two that begin at once, each has made the keys of one cluster. The one that is interrupted removes
// neither.
func TestTwoBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoWorlds()
		live(t, a, b)
		o := connectOptions(a, b)
		o.Remote.Cluster = b.apart()
		o.Local.Cluster = a.hooked("Secret", "peering-b", func() {
			keys, err := inventory.NewKeys(inventory.Hide(wgtypes.Key{1}))
			if err == nil {
				_, err = a.kube.CoreV1().Secrets(a.Namespace).Create(t.Context(), inventory.KeysObject(a.Namespace, first("b"), keys), metav1.CreateOptions{})
			}
			for made := (*inventory.Keys)(nil); err == nil && made == nil; <-time.After(time.Millisecond) {
				made, err = inventory.ReadKeys(t.Context(), b.Cluster, first("a"))
			}
			if err != nil {
				t.Error(err)
			}
		})
		c := newConnector(o, &recorder{})
		for _, do := range []func(context.Context) (string, error){c.reach, c.discover, c.install, c.settle, c.prepare} {
			if _, err := do(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		staysWhile(t, a, b, func() { c.fail(t.Context(), context.Canceled) })
	})
}

// TestUnfinishedIsCompleted: what a killed connect has left can be completed, also after another one has failed, and
// removed.
func TestUnfinishedIsCompleted(t *testing.T) {
	for name, next := range map[string]func(*testing.T, *world, *world){
		"connect": func(t *testing.T, a, b *world) {
			must(t, Connect, connectOptions(a, b))
			checkStands(t, a, b, 1, 1)
		},
		"disconnect": func(t *testing.T, a, b *world) {
			must(t, removal.Disconnect, removal.DisconnectOptions{Local: a.Cluster, Remote: b.Cluster, Timeout: time.Minute})
			for _, w := range []*world{a, b} {
				if left := peeringsLeft(t, w); len(left) > 0 {
					t.Errorf("left in %s: %v", w.Context, left)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := twoWorlds()
				live(t, a, b)
				killed := newConnector(connectOptions(a, b), progress.Quiet{})
				for _, do := range []func(context.Context) (string, error){killed.reach, killed.discover, killed.install, killed.settle, killed.prepare} {
					if _, err := do(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				staysWhile(t, a, b, func() { interruptedAt(t, a, b, "ConfigMap", "peering-b") })
				next(t, a, b)
			})
		})
	}
}
