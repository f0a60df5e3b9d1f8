package peering

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/peering/expose"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
)

// Each of these tests has another command run to its end at the moment at which a first one is about to write what it
// has computed from an older state.

// must runs a command in the place of somebody else.
func must[O, R any](t *testing.T, do func(context.Context, O, progress.Reporter) (R, error), o O) {
	t.Helper()
	if _, err := do(t.Context(), o, &recorder{}); err != nil {
		t.Errorf("the other command: %v", err)
	}
}

func TestUpdateKeepsWhatOthersExpose(t *testing.T) {
	const host = "198.51.100.7"
	for name, c := range map[string]struct {
		before, meanwhile func(context.Context, expose.ExposeOptions, progress.Reporter) (expose.Exposure, error)
		want              []netip.Addr
	}{
		"withdraw": {before: expose.Expose, meanwhile: expose.Withdraw},
		"expose":   {meanwhile: expose.Expose, want: []netip.Addr{netip.MustParseAddr(host)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := connected(t)
				if c.before != nil {
					must(t, c.before, exposing(a, host))
				}
				o := connectOptions(a, b)
				o.Update, o.ClampMSS = true, new(false)
				o.Remote.Cluster = b.apart()
				o.Local.Cluster = a.hooked("ConfigMap", "peering-b", func() { must(t, c.meanwhile, exposing(a, host)) })
				if _, err := Connect(t.Context(), o, &recorder{}); err != nil {
					t.Fatal(err)
				}
				var got []netip.Addr
				for _, x := range peeringOf(t, a).Exposed {
					got = append(got, x.Host)
				}
				if len(got) != len(c.want) || peeringOf(t, a).ClampMSS {
					t.Errorf("exposed: %v, want %v; MSS clamped: %v", got, c.want, peeringOf(t, a).ClampMSS)
				}
				if found := checked(t, a); len(found) > 0 {
					t.Errorf("findings: %q", found)
				}
			})
		})
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
		var differs *plan.DifferenceError
		var err error
		for _, step := range []func(context.Context) (string, error){c.install, c.settle, c.prepare, c.configure} {
			if _, err = step(t.Context()); err != nil {
				break
			}
		}
		if !errors.As(err, &differs) || !strings.Contains(err.Error(), "mtu: 1300 -> 1420") {
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

// TestParallelConnectsShareAFabric: what one has decided of the cluster, and what its user said, is not undone.
func TestParallelConnectsShareAFabric(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoWorlds()
		c := newWorldC()
		live(t, a, b, c)
		states := fabricStates(t, a)
		o := connectOptions(a, b)
		o.Remote.Cluster = b.apart()
		o.Local.Cluster = a.hooked("ConfigMap", "fabric", func() {
			other := connectOptions(a, c)
			other.AllowForward, other.Overlay = new(true), records.VXLAN
			must(t, Connect, other)
		})
		if _, err := Connect(t.Context(), o, &recorder{}); err != nil {
			t.Fatal(err)
		}
		decided := false
		for _, f := range states() {
			if decided && (f.Overlay.Kind != records.VXLAN || f.MTU != 1500 || !f.AllowForward) {
				t.Errorf("fabric went back to overlay %q, MTU %d, allow forward %v", f.Overlay.Kind, f.MTU, f.AllowForward)
			}
			decided = decided || f.Overlay.Kind != ""
		}
		if all, err := inventory.Peerings(t.Context(), a.Cluster); err != nil || len(all) != 2 || !decided {
			t.Errorf("peerings %v, %v; decided: %v", all, err, decided)
		}
	})
}

// fabricStates returns a function that returns all states of the fabric from now on.
func fabricStates(t *testing.T, w *world) func() []records.Fabric {
	t.Helper()
	events, err := w.kube.CoreV1().ConfigMaps(w.Namespace).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=fabric"})
	if err != nil {
		t.Fatal(err)
	}
	return func() (states []records.Fabric) {
		events.Stop()
		for event := range events.ResultChan() {
			if event.Type == watch.Deleted || event.Object.(cluster.Object).GetName() != records.FabricName {
				continue
			}
			f, err := records.Decode[records.Fabric](dataOf(t, event.Object))
			if err != nil {
				t.Fatal(err)
			}
			states = append(states, f)
		}
		return states
	}
}

// TestUpdateDoesNotBringBack what somebody else removes meanwhile.
func TestUpdateDoesNotBringBack(t *testing.T) {
	for name, c := range map[string]struct {
		object    string
		meanwhile func(t *testing.T, a, b *world)
		want      string
	}{
		"peering": {"peering-b", func(t *testing.T, a, b *world) {
			must(t, removal.Disconnect, removal.DisconnectOptions{Local: a.Cluster, Remote: b.Cluster, Timeout: time.Minute})
		}, `peering "b" of cluster "a" was removed`},
		"installation": {"fabric", func(t *testing.T, a, _ *world) {
			must(t, removal.Reset, removal.ResetOptions{Cluster: a.Cluster, Image: "liqonet:1", Force: true, Timeout: time.Minute})
		}, `cluster "a" was removed`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := connected(t)
				o := connectOptions(a, b)
				o.Update, o.ClampMSS, o.AllowForward = true, new(false), new(true)
				o.Remote.Cluster = b.apart()
				o.Local.Cluster = a.hooked("ConfigMap", c.object, func() { c.meanwhile(t, a, b) })
				_, err := Connect(t.Context(), o, &recorder{})
				if err == nil || !strings.Contains(err.Error(), c.want) || hint.Of(err) == "" {
					t.Errorf("error %v, hint %q", err, hint.Of(err))
				}
				if left := peeringsLeft(t, a); len(left) > 0 {
					t.Errorf("peerings left in a: %v", left)
				}
				if left := a.left(t); name == "installation" && len(left) > 0 {
					t.Errorf("left in a: %v", left)
				}
			})
		})
	}
}

// TestFailureKeepsWhatOthersMade: a connect that fails removes what it made, and no connection or installation that
// another run has completed meanwhile.
func TestFailureKeepsWhatOthersMade(t *testing.T) {
	install := func(t *testing.T, a, _ *world) {
		if _, err := initialised(t, a, nil); err != nil {
			t.Error(err)
		}
	}
	connect := func(t *testing.T, a, b *world) { must(t, Connect, connectOptions(a, b)) }
	for name, c := range map[string]struct {
		kind, object string
		meanwhile    func(t *testing.T, a, b *world)
	}{
		"an installation":              {"ConfigMap", "fabric", install},
		"a connection":                 {"ConfigMap", "fabric", connect},
		"a connection with other keys": {"Secret", "peering-b", connect},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := twoWorlds()
				live(t, a, b)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var before map[string]string
				o := connectOptions(a, b)
				o.Remote.Cluster = b.apart()
				o.Local.Cluster = a.hooked(c.kind, c.object, func() {
					c.meanwhile(t, a, b)
					before = contents(t, a)
					cancel()
				})
				if _, err := Connect(ctx, o, &recorder{}); !errors.Is(err, context.Canceled) {
					t.Errorf("error %v", err)
				}
				after := contents(t, a)
				for object := range before {
					if _, ok := after[object]; !ok {
						t.Errorf("%s is gone", object)
					}
				}
			})
		})
	}
}

// TestReplacedKeysStay: a private key that was made meanwhile is not written over.
func TestReplacedKeysStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected(t)
		secrets := a.kube.CoreV1().Secrets(a.Namespace)
		replace := func(change func(*inventory.Keys)) {
			k, err := inventory.ReadKeys(t.Context(), a.Cluster, first("b"))
			if err != nil {
				t.Fatal(err)
			}
			change(k)
			if err := secrets.Delete(t.Context(), "peering-b", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := secrets.Create(t.Context(), inventory.KeysObject(a.Namespace, first("b"), *k), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		// Another preshared key than the server's, which the client's Secret is to be given.
		replace(func(k *inventory.Keys) { k.Preshared = inventory.Hide(wgtypes.Key{1}) })
		made, err := wgtypes.GeneratePrivateKey()
		if err != nil {
			t.Fatal(err)
		}
		o := connectOptions(a, b)
		o.Update = true
		o.Remote.Cluster = b.apart()
		o.Local.Cluster = a.hooked("Secret", "peering-b", func() { replace(func(k *inventory.Keys) { k.Private = inventory.Hide(made) }) })
		if _, err := Connect(t.Context(), o, &recorder{}); err != nil {
			t.Fatal(err)
		}
		if k, err := inventory.ReadKeys(t.Context(), a.Cluster, first("b")); err != nil || k.Private() != made {
			t.Errorf("the private key that was made meanwhile is gone: %v", err)
		}
		checkKeys(t, a, b)
	})
}

// TestExposeMeetsWithdraw: whichever comes last, a host that is exposed has an address that is held.
func TestExposeMeetsWithdraw(t *testing.T) {
	const host = "198.51.100.7"
	for name, c := range map[string]struct {
		do, meanwhile func(context.Context, expose.ExposeOptions, progress.Reporter) (expose.Exposure, error)
		object        string
	}{
		"expose before an address is released": {expose.Withdraw, expose.Expose, "ipam"},
		"withdraw after an address is held":    {expose.Expose, expose.Withdraw, "peering-b"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, _ := connected(t)
				if name == "expose before an address is released" {
					must(t, expose.Expose, exposing(a, host))
				}
				o := exposing(a, host)
				o.Cluster = a.hooked("ConfigMap", c.object, func() { must(t, c.meanwhile, exposing(a, host)) })
				if _, err := c.do(t.Context(), o, &recorder{}); err != nil {
					t.Fatal(err)
				}
				if len(peeringOf(t, a).Exposed) != 1 {
					t.Errorf("exposed: %v", peeringOf(t, a).Exposed)
				}
				expectHeld(t, a, "10.70.128.1 for "+host)
			})
		})
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

// dataOf is the record of a ConfigMap.
func dataOf(t *testing.T, o runtime.Object) string {
	t.Helper()
	object, ok := o.(*corev1.ConfigMap)
	if !ok {
		t.Fatalf("%T is no ConfigMap", o)
	}
	return object.Data[records.DataKey]
}
