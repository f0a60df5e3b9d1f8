package peering

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/expose"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// addLater adds a field of a later release to a cluster's records.
func addLater(t *testing.T, w *fakecluster.Cluster, names ...string) {
	t.Helper()
	for _, name := range names {
		cm, err := w.Fake.CoreV1().ConfigMaps(w.Namespace).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		if text, json := strings.CutPrefix(cm.Data[records.DataKey], "{"); json { // written by helpers
			cm.Data[records.DataKey] = `{"later": {"some": 1}, ` + text
		} else {
			cm.Data[records.DataKey] += "later: {some: 1}\n"
		}
		_, err = w.Fake.CoreV1().ConfigMaps(w.Namespace).Update(t.Context(), cm, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
}

// TestLaterRelease: records with a field of a later release are read, and no operation deletes the field: a change of
// the record is rejected before anything is changed.
func TestLaterRelease(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string][]string{
		"peering-b":        {"update", "expose"},
		records.FabricName: {"update"},
		records.IPAMName:   {"expose"},
		"status-b":         nil,
	} {
		bubble.Run(t, name, func(t *testing.T) {
			a, b := connected(t)
			a.Set(func() { a.Paused = true })
			addLater(t, a, name)
			before := fakecluster.Contents(t, a.Cluster)
			all, err := status.Read(t.Context(), status.Options{Cluster: a.Cluster})
			if err != nil || len(all) != 1 || all[0].State != health.Healthy {
				t.Errorf("status: %+v, %v", all, err)
			}
			a.Set(func() { a.Paused = false })
			changesNothing(t, connectOptions(a, b))
			o := connectOptions(a, b)
			o.Update, o.MTU, o.Image, o.OverlayPort = true, new(1300), "liqonet:2", 7000
			_, update := Connect(t.Context(), o, &fakecluster.Recorder{})
			if slices.Contains(refused, "update") {
				expectRefused(t, "update", name, update)
				assert.Equal(t, "objects after a refusal", before, fakecluster.Contents(t, a.Cluster))
			} else if update != nil {
				t.Errorf("update: %v", update)
			}
			_, expose := expose.Expose(t.Context(), exposing(a, "198.51.100.7"), &fakecluster.Recorder{})
			if slices.Contains(refused, "expose") {
				expectRefused(t, "expose", name, expose)
				a.ExpectExposed(t)
			} else if expose != nil {
				t.Errorf("expose: %v", expose)
			}
		})
	}
}

func expectRefused(t *testing.T, what, name string, err error) {
	t.Helper()
	unknown, ok := errors.AsType[*records.UnknownFieldsError](err)
	if !ok || !slices.Equal(unknown.Fields, []string{"later"}) || !strings.Contains(err.Error(), "ConfigMap liqonet/"+name) || hint.Of(err) == "" {
		t.Errorf("%s: %v", what, err)
	}
}

// TestLaterReleaseIsRemoved: objects with fields of a later release can be deleted.
func TestLaterReleaseIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected(t)
		for _, w := range []*fakecluster.Cluster{a, b} {
			peer := w.Peering(t).Name
			addLater(t, w, records.FabricName, records.PeeringName(peer), "status-"+peer)
		}
		fakecluster.Must(t, removal.Disconnect, removal.DisconnectOptions{Local: a.Cluster, Remote: b.Cluster})
		fakecluster.ExpectNoTraces(t, a)
		addLater(t, a, records.IPAMName)
		fakecluster.Must(t, removal.Reset, removal.ResetOptions{Cluster: a.Cluster, Image: "liqonet:1"})
		if left, err := kube.All[*corev1.ConfigMap](t.Context(), a.Cluster, ""); err != nil || len(left) > 0 {
			t.Errorf("left %v, %v", left, err)
		}
	})
}
