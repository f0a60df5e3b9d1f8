package peering

import (
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/templates"
)

// TestSettingsOfPodsStay: runs without pod settings keep those of init, also for gateways.
func TestSettingsOfPodsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		ctx := t.Context()
		edge, label := map[string]string{"example.com/edge": "true"}, map[string]string{"team": "network"}
		install := InitOptions{Side: Side{Cluster: a.Cluster}, Timeout: time.Minute, Installation: Installation{
			Image: "liqonet:1", Pods: templates.Pods{GatewayNodeSelector: edge, Labels: label},
		}}
		fakecluster.Must(t, Init, install)
		install.Pods = templates.Pods{}
		if again, err := Init(ctx, install, &fakecluster.Recorder{}); err != nil || again.Changed {
			t.Errorf("again, without settings: changed %v, %v", again.Objects, err)
		}
		fakecluster.Must(t, Connect, connectOptions(a, b))
		gateway := func(w *fakecluster.Cluster, name string) *appsv1.Deployment {
			d, err := kube.Find[*appsv1.Deployment](ctx, w.Cluster, name)
			if err != nil || d == nil {
				t.Fatal(d, err)
			}
			return d
		}
		pod := gateway(a, "gateway-b").Spec.Template
		if pod.Spec.NodeSelector["example.com/edge"] != "true" || pod.Labels["team"] != "network" {
			t.Errorf("gateway in a: nodes %v, labels %v", pod.Spec.NodeSelector, pod.Labels)
		}
		if other := gateway(b, "gateway-a").Spec.Template; maps.Equal(other.Spec.NodeSelector, pod.Spec.NodeSelector) {
			t.Errorf("the gateway in b has the settings of a: %v", other.Spec.NodeSelector)
		}
		wantUnaltered(t, a, b)

		install.Pods.GatewayNodeSelector = map[string]string{}
		if _, err := Init(ctx, install, &fakecluster.Recorder{}); !errors.As(err, new(*plan.DifferenceError)) {
			t.Errorf("another setting without consent: %v", err)
		}
		install.Update = true
		fakecluster.Must(t, Init, install)
		wantUnaltered(t, a, b) // the next connect updates the gateway
		again := connectOptions(a, b)
		again.Update = true
		fakecluster.Must(t, Connect, again)
		if pod := gateway(a, "gateway-b").Spec.Template; pod.Spec.NodeSelector["example.com/edge"] != "" || pod.Labels["team"] != "network" {
			t.Errorf("gateway in a after the update: nodes %v, labels %v", pod.Spec.NodeSelector, pod.Labels)
		}
		wantUnaltered(t, a, b)
	})
}

// TestOverlayPortStays: runs without the port keep it, and changes need consent.
func TestOverlayPortStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := fakecluster.RunPair(t)
		o := initOptions(a)
		for _, run := range []struct {
			port   uint16 // requested
			update bool
			want   uint16
			err    bool
		}{
			{port: 0, want: records.DefaultOverlayPort},
			{port: 6191, want: records.DefaultOverlayPort, err: true},
			{port: 6191, update: true, want: 6191},
			{port: 0, want: 6191},
		} {
			o.OverlayPort, o.Update = run.port, run.update
			_, err := Init(t.Context(), o, &fakecluster.Recorder{})
			if f, e := inventory.Fabric(t.Context(), a.Cluster); e != nil || f.Overlay.Port != run.want || (err != nil) != run.err {
				t.Errorf("%+v: port %d, %v, %v", run, f.Overlay.Port, err, e)
			}
		}
	})
}

// wantUnaltered fails the test if status reports objects of an installation as altered.
func wantUnaltered(t *testing.T, clusters ...*fakecluster.Cluster) {
	t.Helper()
	for _, w := range clusters {
		s, err := status.Read(t.Context(), status.Options{Cluster: w.Cluster})
		require.NoError(t, err)
		for _, p := range s {
			if altered := health.With(p.Findings, status.ObjectsIntact); len(altered) > 0 {
				t.Errorf("status of %s: altered %+v", w.Context, altered)
			}
		}
	}
}

// TestDamagedSettingsOfPods: settings that do not decode are an error; they are not replaced by the defaults.
func TestDamagedSettingsOfPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := fakecluster.RunPair(t)
		o := initOptions(a)
		fakecluster.Must(t, Init, o)
		patch := `{"metadata":{"annotations":{"liqonet.io/pods":"{\"hostNetwork\":true}"}}}`
		_, err := a.Kube.AppsV1().DaemonSets(a.Namespace).Patch(t.Context(), records.NodeName, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		require.NoError(t, err)
		o.Update = true
		_, err = Init(t.Context(), o, &fakecluster.Recorder{})
		const want = `DaemonSet liqonet/node of cluster "a": annotation liqonet.io/pods: `
		assert.ErrorContains(t, "init", err, want)
	})
}
