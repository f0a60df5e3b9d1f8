package peering

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/peering/expose"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/templates"
)

// in is the same cluster with another namespace of liqonet's.
func (w *world) in(namespace string) *cluster.Cluster {
	c := *w.Cluster
	c.Namespace = namespace
	return &c
}

// forbid has the API server refuse requests that are not about the namespace, or its cluster-wide objects.
func (w *world) forbid(verb, resource, namespace string) {
	w.kube.PrependReactor(verb, resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
		get, ok := a.(clienttesting.GetAction)
		if a.GetNamespace() == namespace || ok && strings.Contains(get.GetName(), ":"+namespace+":") {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", nil)
	})
}

// initialised runs Init in a world.
func initialised(t *testing.T, w *world, change func(*InitOptions)) (InitResult, error) {
	t.Helper()
	o := InitOptions{Side: Side{Cluster: w.Cluster}, Installation: Installation{Image: "liqonet:1"}, Timeout: time.Minute}
	if change != nil {
		change(&o)
	}
	return Init(t.Context(), o, &recorder{})
}

// inOther are commands that speak of namespace "other" of cluster a, where liqonet is not.
var inOther = map[string]func(t *testing.T, a, b *world) error{
	"init": func(t *testing.T, a, _ *world) error {
		_, err := initialised(t, a, func(o *InitOptions) { o.Side.Cluster = a.in("other") })
		return err
	},
	"connect": func(t *testing.T, a, b *world) error {
		o := connectOptions(a, b)
		o.Local.Cluster = a.in("other")
		_, err := Connect(t.Context(), o, &recorder{})
		return err
	},
	"connect, remote": func(t *testing.T, a, b *world) error {
		o := connectOptions(b, a)
		o.Remote.Cluster = a.in("other")
		_, err := Connect(t.Context(), o, &recorder{})
		return err
	},
	"reset --verify-only": func(t *testing.T, a, _ *world) error {
		o := verifyOptions(a)
		o.Cluster = a.in("other")
		_, err := removal.Reset(t.Context(), o, &recorder{})
		return err
	},
	"expose": func(t *testing.T, a, _ *world) error {
		o := exposing(a, "198.51.100.7")
		o.Cluster = a.in("other")
		_, err := expose.Expose(t.Context(), o, &recorder{})
		return err
	},
	"disconnect": func(t *testing.T, a, b *world) error {
		_, err := removal.Disconnect(t.Context(), removal.DisconnectOptions{Local: a.in("other"), Remote: b.Cluster}, &recorder{})
		return err
	},
	"status": func(t *testing.T, a, _ *world) error {
		_, err := status.Read(t.Context(), status.Options{Cluster: a.in("other")})
		return err
	},
	"ipam": func(t *testing.T, a, _ *world) error { return inventory.CheckInstalled(t.Context(), a.in("other")) },
	"ipam translate": func(t *testing.T, a, _ *world) error {
		_, err := inventory.Translation(t.Context(), a.in("other"))
		return err
	},
}

// TestSecondInstallationIsRefused before anything is written, whoever asks: node helpers of two installations would
// fight for the same port and the same kernel.
func TestSecondInstallationIsRefused(t *testing.T) {
	t.Parallel()
	users := map[string]func(a *world){
		"administrator":   func(*world) {},
		"least privilege": func(a *world) { a.forbid("get", "clusterroles", "other") },
		"no DaemonSets": func(a *world) {
			a.forbid("get", "clusterroles", "other")
			a.forbid("list", "daemonsets", "other")
		},
	}
	for command, run := range inOther {
		for user, restrict := range users {
			t.Run(command+"/"+user, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a, b := connected(t)
					awaitPods(t, a)
					before, chain := allOf(t, a), a.kube.ReactionChain
					a.set(func() { restrict(a) })
					err := run(t, a, b)
					a.set(func() { a.kube.ReactionChain = chain })
					if err == nil || !strings.Contains(err.Error(), `installed in namespace liqonet of cluster "a", not in other`) {
						t.Errorf("error %v", err)
					}
					if !strings.Contains(hint.Of(err), "--namespace liqonet") {
						t.Errorf("hint %q", hint.Of(err))
					}
					if diff := cmp.Diff(before, allOf(t, a)); diff != "" {
						t.Errorf("refused, and yet:\n%s", diff)
					}
				})
			})
		}
	}
}

// TestStrayReservations: reservations that an earlier release made in another namespace are no installation; those of
// an interrupted one are.
func TestStrayReservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connected(t)
		reserve := func(r *ipam.Registry) error {
			return r.Reserve(ipam.Reservation{Range: netip.MustParsePrefix("10.9.0.0/16"), Owner: ipam.User("vpn"), Purpose: ipam.Reserved})
		}
		if err := inventory.UpdateReservations(t.Context(), a.in("other"), reserve); err != nil {
			t.Fatal(err)
		}
		if _, elsewhere := errors.AsType[*inventory.ElsewhereError](inventory.CheckInstalled(t.Context(), a.in("other"))); !elsewhere {
			t.Error("a stray registry is taken for an installation")
		}
		if _, err := a.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: inventory.Meta(a.Namespace, records.FabricName)}); err != nil {
			t.Fatal(err)
		}
		if err := inventory.CheckInstalled(t.Context(), a.Cluster); err != nil {
			t.Errorf("without a fabric: %v", err)
		}
	})
}

// awaitPods waits until the helpers' pods are there.
func awaitPods(t *testing.T, w *world) {
	t.Helper()
	err := cluster.Wait(t.Context(), w.Cluster, cluster.Labelled(inventory.Selector(records.ComponentFabric)), "pods", func(pods []*corev1.Pod) (string, error) {
		if len(pods) == 0 {
			return "none", nil
		}
		return "", nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// allOf are the objects of an installation in both namespaces, but for what helpers write.
func allOf(t *testing.T, w *world) map[string]string {
	t.Helper()
	all := contents(t, w)
	for name, text := range contentsOf(t, w.in("other")) {
		all["other: "+name] = text
	}
	return all
}

// TestRemainsOfAnotherInstallation: what is left of an installation that was removed by hand is no installation, nor is
// what only bears its label.
func TestRemainsOfAnotherInstallation(t *testing.T) {
	labels := map[string]string{records.LabelComponent: records.ComponentFabric}
	meta := metav1.ObjectMeta{Namespace: "other", Name: records.NodeName, Labels: labels}
	rights := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: templates.NodeClusterRole("other"), Labels: labels}}
	for name, objects := range map[string][]runtime.Object{
		"its rights":  {rights},
		"a ConfigMap": {&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: records.FabricName, Labels: labels}}},
		"a DaemonSet without the rights": {&appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{HostNetwork: true}},
		}}},
		"a DaemonSet in a network of its own, with the rights": {&appsv1.DaemonSet{ObjectMeta: meta}, rights},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, _ := twoWorlds()
				for _, o := range objects {
					if err := a.kube.Tracker().Add(o); err != nil {
						t.Fatal(err)
					}
				}
				live(t, a)
				if _, err := initialised(t, a, nil); err != nil {
					t.Errorf("init: %v", err)
				}
			})
		})
	}
}

// second makes the objects of a second installation of cluster a, as a liqoctl did that did not look for the first.
func second(t *testing.T, a *world, since time.Time) {
	t.Helper()
	base, err := templates.Base(templates.BaseValues{Namespace: "other", Image: "liqonet:1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range base {
		o.SetCreationTimestamp(metav1.NewTime(since))
	}
	if _, err := a.Apply(t.Context(), base...); err != nil {
		t.Fatal(err)
	}
}

// TestSecondInstallationCanBeRemoved, if there is one, and the first one stays.
func TestSecondInstallationCanBeRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connected(t)
		before := contents(t, a)
		second(t, a, time.Now())
		r := &recorder{}
		if _, err := removal.Reset(t.Context(), removal.ResetOptions{Cluster: a.in("other"), Image: "liqonet:1", Timeout: time.Minute}, r); err != nil {
			t.Fatal(err)
		}
		if left := contentsOf(t, a.in("other")); len(left) > 0 {
			t.Errorf("left of the second: %v", left)
		}
		if diff := cmp.Diff(before, contents(t, a)); diff != "" {
			t.Errorf("the first one is another now:\n%s", diff)
		}
		if said := strings.Join(r.said(), "\n"); !strings.Contains(said, "installed in namespace liqonet") {
			t.Errorf("nothing is said of the first one:\n%s", said)
		}
	})
}

// TestYoungerInstallationIsTold: of two installations, which an earlier liqoctl made, the first one goes on.
func TestYoungerInstallationIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected(t)
		second(t, a, time.Now().Add(time.Hour))
		r := &recorder{}
		if _, err := Connect(t.Context(), connectOptions(a, b), r); err != nil {
			t.Errorf("in the older one's namespace: %v", err)
		}
		if said := strings.Join(r.said(), "\n"); !strings.Contains(said, "warn ") || !strings.Contains(said, "liqoctl network reset -n other") {
			t.Errorf("nothing is said of the younger one:\n%s", said)
		}
		if err := inOther["connect"](t, a, b); err == nil || !strings.Contains(err.Error(), "installed in namespace liqonet") {
			t.Errorf("in the younger one's namespace: %v", err)
		}
		r = &recorder{}
		o := removal.ResetOptions{Cluster: a.Cluster, Image: "liqonet:1", Force: true, Timeout: time.Minute}
		if got, err := removal.Reset(t.Context(), o, r); err != nil || got.Remains != nil {
			t.Errorf("kernels are verified under a helper that runs: %+v, %v", got.Remains, err)
		}
		if said := strings.Join(r.said(), "\n"); !strings.Contains(said, "its nodes are not verified") {
			t.Errorf("nothing is said of the nodes:\n%s", said)
		}
	})
}
