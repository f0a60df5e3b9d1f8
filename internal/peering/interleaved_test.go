package peering

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// In each of these tests another writer changes a cluster when a command is about to write a result computed from an
// older state.

// TestUpdateOfOthersStays: a connect without --update, which found no differences, does not revert an update of another
// run.
func TestUpdateOfOthersStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected(t)
		c := newConnector(connectOptions(a, b), &fakecluster.Recorder{})
		require.NoError(t, steps(t, c.reach, c.discover, c.compare))
		other := connectOptions(a, b)
		other.Update, other.MTU, other.AllowForward, other.Image = true, new(1300), new(true), "newer"
		fakecluster.Must(t, Connect, other)
		err := steps(t, c.install, c.awaitNodes, c.prepare, c.configure)
		if !errors.Is(err, kube.ErrConflict) {
			t.Errorf("error %v", err)
		}
		for _, w := range []*fakecluster.Cluster{a, b} {
			if f, err := inventory.Fabric(t.Context(), w.Cluster); err != nil || !f.AllowForward || w.Peering(t).MTU != 1300 {
				t.Errorf("cluster %s: fabric %+v, MTU %d, %v", w.Context, f, w.Peering(t).MTU, err)
			}
			for object, text := range fakecluster.Contents(t, w.Cluster) {
				if strings.Contains(text, "image: ") && !strings.Contains(text, "image: newer") {
					t.Errorf("cluster %s: %s has the older image again", w.Context, object)
				}
			}
		}
	})
}

// TestConflict: a writer without a lock, such as kubectl, changes an object that a run has read and is about to write.
// The run ends with an error and reverts nothing; the next run completes the peering.
func TestConflict(t *testing.T) {
	foreign := inventory.Hide(wgtypes.Key{1})
	for name, c := range map[string]struct {
		resource, object string
		change           func(t *testing.T, a *fakecluster.Cluster)
		overwritten      func(t *testing.T, a *fakecluster.Cluster) bool // the change
	}{
		"record": {"configmaps", "peering-b", func(t *testing.T, a *fakecluster.Cluster) {
			_, err := inventory.Swap(t.Context(), a.Cluster, records.PeeringName("b"), func(live *records.Peering) (records.Peering, error) {
				p := *live
				p.Settings.GatewayMode = new(records.ActiveStandby)
				return p, nil
			})
			assert.NoError(t, err)
		}, func(t *testing.T, a *fakecluster.Cluster) bool {
			return a.Peering(t).Settings.GatewayMode == nil
		}},
		"record that is removed": {"configmaps", "peering-b", func(t *testing.T, a *fakecluster.Cluster) { removeObject(t, a, "configmaps", "peering-b") },
			func(t *testing.T, a *fakecluster.Cluster) bool {
				return fakecluster.Contents(t, a.Cluster)["*v1.ConfigMap "+records.PeeringName("b")] != ""
			}},
		"fabric": {"configmaps", "fabric", func(t *testing.T, a *fakecluster.Cluster) {
			_, err := inventory.Swap(t.Context(), a.Cluster, records.FabricName, func(live *records.Fabric) (records.Fabric, error) {
				f := *live
				f.MTU = 1400
				return f, nil
			})
			assert.NoError(t, err)
		}, func(t *testing.T, a *fakecluster.Cluster) bool {
			f, err := inventory.Fabric(t.Context(), a.Cluster)
			return err != nil || f.MTU != 1400
		}},
		"fabric that is removed": {"configmaps", "fabric", func(t *testing.T, a *fakecluster.Cluster) { removeObject(t, a, "configmaps", "fabric") },
			func(t *testing.T, a *fakecluster.Cluster) bool {
				f, err := inventory.Fabric(t.Context(), a.Cluster)
				return err != nil || f != nil
			}},
		"keys": {"secrets", "peering-b", func(t *testing.T, a *fakecluster.Cluster) {
			keys, err := inventory.NewKeys(foreign)
			if err == nil {
				_, err = a.Fake.CoreV1().Secrets(a.Namespace).Create(t.Context(), inventory.KeysObject(a.Namespace, fakecluster.FirstGateway("b"), keys), metav1.CreateOptions{})
			}
			assert.NoError(t, err)
		}, func(t *testing.T, a *fakecluster.Cluster) bool {
			k, err := inventory.ReadKeys(t.Context(), a.Cluster, fakecluster.FirstGateway("b"))
			return err != nil || k.Preshared() != foreign()
		}},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			a, b := connected(t)
			if c.resource == "secrets" {
				removeObject(t, a, "secrets", "peering-b") // connect creates it again
			}
			o := connectOptions(a, b)
			o.Update, o.ClampMSS, o.AllowForward = true, new(false), new(true)
			before := fakecluster.Contents(t, b.Cluster)
			o.Local.Cluster = a.Intercept(c.resource, c.object, func() error {
				c.change(t, a)
				return nil
			})
			_, err := Connect(t.Context(), o, &fakecluster.Recorder{})
			if !errors.Is(err, kube.ErrConflict) || !strings.Contains(err.Error(), c.object) || hint.Of(err) != "run this again" {
				t.Errorf("error %v, hint %q", err, hint.Of(err))
			}
			if c.overwritten(t, a) {
				t.Error("what the other writer did is overwritten")
			}
			for object := range before {
				if _, ok := fakecluster.Contents(t, b.Cluster)[object]; !ok {
					t.Errorf("cluster b: %s is gone", object)
				}
			}
			o.Local.Cluster = a.Cluster
			if _, err := Connect(t.Context(), o, &fakecluster.Recorder{}); err != nil {
				t.Errorf("again: %v", err)
			}
			checkGatewayCounts(t, a, b, 1, 1)
		})
	}
}

// removeObject deletes an object as kubectl does.
func removeObject(t *testing.T, w *fakecluster.Cluster, resource, name string) {
	t.Helper()
	assert.NoError(t, w.Fake.Tracker().Delete(corev1.SchemeGroupVersion.WithResource(resource), w.Namespace, name))
}
