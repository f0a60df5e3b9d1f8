package inventory_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/peering/expose"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/connected"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/templates"
)

// inOther returns commands for namespace "other" of cluster a, in which liqonet is not installed.
var inOther = map[string]func(t *testing.T, a, b *fakecluster.Cluster) error{
	"init": func(t *testing.T, a, _ *fakecluster.Cluster) error {
		_, err := connected.Init(t, a, func(o *peering.InitOptions) { o.Side.Cluster = a.In("other") })
		return err
	},
	"connect": func(t *testing.T, a, b *fakecluster.Cluster) error {
		o := connected.Options(a, b)
		o.Local.Cluster = a.In("other")
		_, err := peering.Connect(t.Context(), o, &fakecluster.Recorder{})
		return err
	},
	"connect, remote": func(t *testing.T, a, b *fakecluster.Cluster) error {
		o := connected.Options(b, a)
		o.Remote.Cluster = a.In("other")
		_, err := peering.Connect(t.Context(), o, &fakecluster.Recorder{})
		return err
	},
	"reset --verify-only": func(t *testing.T, a, _ *fakecluster.Cluster) error {
		o := removal.ResetOptions{VerifyOnly: true, Image: "liqonet:1", Timeout: time.Minute}
		o.Cluster = a.In("other")
		_, err := removal.Reset(t.Context(), o, &fakecluster.Recorder{})
		return err
	},
	"expose": func(t *testing.T, a, _ *fakecluster.Cluster) error {
		o := connected.Exposing(a, "198.51.100.7")
		o.Cluster = a.In("other")
		_, err := expose.Expose(t.Context(), o, &fakecluster.Recorder{})
		return err
	},
	"disconnect": func(t *testing.T, a, b *fakecluster.Cluster) error {
		_, err := removal.Disconnect(t.Context(), removal.DisconnectOptions{Local: a.In("other"), Remote: b.Cluster}, &fakecluster.Recorder{})
		return err
	},
	"status": func(t *testing.T, a, _ *fakecluster.Cluster) error {
		_, err := status.Read(t.Context(), status.Options{Cluster: a.In("other")})
		return err
	},
	"ipam": func(t *testing.T, a, _ *fakecluster.Cluster) error {
		return inventory.CheckInstalled(t.Context(), a.In("other"))
	},
	"ipam translate": func(t *testing.T, a, _ *fakecluster.Cluster) error {
		_, err := inventory.Translation(t.Context(), a.In("other"))
		return err
	},
}

// TestSecondInstallationIsRefused: every command rejects a second installation before the first write: node helpers of
// two installations would compete for the same port and the same kernel.
func TestSecondInstallationIsRefused(t *testing.T) {
	t.Parallel()
	users := map[string]func(a *fakecluster.Cluster){
		"administrator":   func(*fakecluster.Cluster) {},
		"least privilege": func(a *fakecluster.Cluster) { a.ForbidOutside("get", "clusterroles", "other") },
		"no DaemonSets": func(a *fakecluster.Cluster) {
			a.ForbidOutside("get", "clusterroles", "other")
			a.ForbidOutside("list", "daemonsets", "other")
		},
	}
	for command, run := range inOther {
		for user, restrict := range users {
			bubble.Run(t, command+"/"+user, func(t *testing.T) {
				a, b := connected.New(t)
				awaitPods(t, a)
				before, chain := allOf(t, a), a.Fake.ReactionChain
				a.Set(func() { restrict(a) })
				err := run(t, a, b)
				a.Set(func() { a.Fake.ReactionChain = chain })
				assert.ErrorContains(t, "run", err, `installed in namespace liqonet of cluster "a", not in other`)
				if !strings.Contains(hint.Of(err), "--namespace liqonet") {
					t.Errorf("hint %q", hint.Of(err))
				}
				assert.Equal(t, "objects after a refusal", before, allOf(t, a))
			})
		}
	}
}

// TestStrayReservations: reservations of an earlier release in another namespace are not an installation; those of an
// interrupted installation are.
func TestStrayReservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connected.New(t)
		reserve := func(r *ipam.Registry) error {
			return r.Reserve(ipam.Reservation{Range: netip.MustParsePrefix("10.9.0.0/16"), Owner: ipam.User("vpn"), Purpose: ipam.Reserved})
		}
		require.NoError(t, inventory.UpdateReservations(t.Context(), a.In("other"), reserve))
		if _, elsewhere := errors.AsType[*inventory.ElsewhereError](inventory.CheckInstalled(t.Context(), a.In("other"))); !elsewhere {
			t.Error("a stray registry is taken for an installation")
		}
		_, err := a.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: inventory.Meta(a.Namespace, records.FabricName)})
		require.NoError(t, err)
		if err := inventory.CheckInstalled(t.Context(), a.Cluster); err != nil {
			t.Errorf("without a fabric: %v", err)
		}
	})
}

// awaitPods waits until the helpers' pods exist.
func awaitPods(t *testing.T, w *fakecluster.Cluster) {
	t.Helper()
	err := kube.Wait(t.Context(), w.Cluster, kube.Labelled(inventory.Selector(records.ComponentFabric)), "pods", func(pods []*corev1.Pod) (string, error) {
		if len(pods) == 0 {
			return "none", nil
		}
		return "", nil
	})
	require.NoError(t, err)
}

// allOf returns the objects of an installation in both namespaces, without those that helpers write.
func allOf(t *testing.T, w *fakecluster.Cluster) map[string]string {
	t.Helper()
	all := fakecluster.Contents(t, w.Cluster)
	for name, text := range fakecluster.Contents(t, w.In("other")) {
		all["other: "+name] = text
	}
	return all
}

// TestRemainsOfAnotherInstallation: remains of an installation that was removed by hand are not an installation, nor
// are objects that only have its label.
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
		bubble.Run(t, name, func(t *testing.T) {
			a, _ := fakecluster.Pair()
			for _, o := range objects {
				require.NoError(t, a.Fake.Tracker().Add(o))
			}
			fakecluster.Run(t, a)
			if _, err := connected.Init(t, a, nil); err != nil {
				t.Errorf("init: %v", err)
			}
		})
	}
}

// TestSecondInstallationCanBeRemoved: a second installation can be removed; the first one is kept.
func TestSecondInstallationCanBeRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connected.New(t)
		before := fakecluster.Contents(t, a.Cluster)
		connected.Second(t, a, time.Now())
		r := &fakecluster.Recorder{}
		_, err := removal.Reset(t.Context(), removal.ResetOptions{Cluster: a.In("other"), Image: "liqonet:1", Timeout: time.Minute}, r)
		require.NoError(t, err)
		if left := fakecluster.Contents(t, a.In("other")); len(left) > 0 {
			t.Errorf("left of the second: %v", left)
		}
		assert.Equal(t, "objects of the first one", before, fakecluster.Contents(t, a.Cluster))
		if output := strings.Join(r.Lines(), "\n"); !strings.Contains(output, "installed in namespace liqonet") {
			t.Errorf("the output does not contain the first installation:\n%s", output)
		}
	})
}

// TestYoungerInstallationIsReported: of two installations, which an earlier liqoctl created, the first one remains
// usable.
func TestYoungerInstallationIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected.New(t)
		connected.Second(t, a, time.Now().Add(time.Hour))
		r := &fakecluster.Recorder{}
		if _, err := peering.Connect(t.Context(), connected.Options(a, b), r); err != nil {
			t.Errorf("in the older one's namespace: %v", err)
		}
		if output := strings.Join(r.Lines(), "\n"); !strings.Contains(output, "warn ") || !strings.Contains(output, "liqoctl network reset -n other") {
			t.Errorf("the output does not contain the younger installation:\n%s", output)
		}
		if err := inOther["connect"](t, a, b); err == nil || !strings.Contains(err.Error(), "installed in namespace liqonet") {
			t.Errorf("in the younger one's namespace: %v", err)
		}
		r = &fakecluster.Recorder{}
		o := removal.ResetOptions{Cluster: a.Cluster, Image: "liqonet:1", Force: true, Timeout: time.Minute}
		if got, err := removal.Reset(t.Context(), o, r); err != nil || got.Remains != nil {
			t.Errorf("kernels are verified under a helper that runs: %+v, %v", got.Remains, err)
		}
		if output := strings.Join(r.Lines(), "\n"); !strings.Contains(output, "its nodes are not verified") {
			t.Errorf("the output does not mention the nodes:\n%s", output)
		}
	})
}
