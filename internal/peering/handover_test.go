package peering

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// watchReplaced observes whether the second gateway of a peering has a tunnel when the pod of the first one is
// replaced.
func watchReplaced(w *fakecluster.Cluster, peering string) (withSecond func() (is, seen bool)) {
	var is, seen bool
	second := records.GatewayID{Peering: peering, Number: 2}
	replaces := func(patch clienttesting.PatchActionImpl) bool {
		if patch.Name != fakecluster.FirstGateway(peering).Name() || len(patch.PatchOptions.DryRun) > 0 {
			return false
		}
		live, err := w.Fake.Tracker().Get(patch.Resource, patch.Namespace, patch.Name)
		d, ok := live.(*appsv1.Deployment)
		if err != nil || !ok {
			return false
		}
		pod := d.Spec.Template.Spec
		return strings.Contains(string(patch.Patch), "liqonet:2") && pod.Containers[0].Image != "liqonet:2" || *pod.TerminationGracePeriodSeconds == otherGrace
	}
	w.Set(func() {
		w.Fake.PrependReactor("patch", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if !seen && replaces(action.(clienttesting.PatchActionImpl)) {
				is, seen = w.HasTunnel(second), true
			}
			return false, nil, nil
		})
	})
	return func() (bool, bool) { return is, seen }
}

// otherGrace is a grace period that no template of liqoctl has.
const otherGrace = 5

// ofOtherTemplate changes the Deployment of a peering's gateway to another template.
func ofOtherTemplate(t *testing.T, w *fakecluster.Cluster, peering string) {
	t.Helper()
	deployments := w.Fake.AppsV1().Deployments(w.Namespace)
	d, err := deployments.Get(t.Context(), fakecluster.FirstGateway(peering).Name(), metav1.GetOptions{})
	require.NoError(t, err)
	d.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(otherGrace))
	_, err = deployments.Update(t.Context(), d, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// TestOnlyGatewayReplaced: before a cluster's only gateway gets another image, packets cross by a temporary second one.
func TestOnlyGatewayReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		port       uint16 // of the server, as used by the client; 0: the Service's
		older      bool   // the gateways' templates differ in more than the image
		broken     bool   // no packets cross before, and for some time after
		withSecond bool   // want
	}{
		"healthy":                 {withSecond: true},
		"a port that is the only": {port: 4000},
		"broken":                  {broken: true},
		"of another template":     {older: true, withSecond: true},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			a, b := fakecluster.RunPair(t)
			o := connectOptions(a, b)
			if c.port != 0 {
				o.EndpointPort = &c.port
			}
			fakecluster.Must(t, Connect, o)
			if c.broken {
				a.Set(func() { a.NotReportingGateway, a.Interval = fakecluster.FirstGateway("b"), slowly })
				b.Set(func() { b.Interval = slowly })
				time.Sleep(health.Life(health.ReportEvery)) //nolint:forbidigo // synctest's clock
				defer time.AfterFunc(replaceTime, func() { a.Set(func() { a.NotReportingGateway = records.GatewayID{} }) }).Stop()
			}
			if c.older {
				ofOtherTemplate(t, a, "b")
				ofOtherTemplate(t, b, "a")
			}
			replaced := watchReplaced(b, "a")
			o.Image, o.Update = "liqonet:2", true
			planned := &fakecluster.Recorder{}
			_, err := PlanConnect(t.Context(), o, planned)
			require.NoError(t, err)
			if says := strings.Contains(planned.Output(), "second gateways carry"); says != (c.port == 0) {
				t.Errorf("the plan says: %q", planned.Lines())
			}
			r, meanwhile := &fakecluster.Recorder{}, false
			b.Set(func() {
				b.Fake.PrependReactor("patch", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
					patch := action.(clienttesting.PatchActionImpl)
					if patch.Name == fakecluster.FirstGateway("a").Name() && len(patch.PatchOptions.DryRun) == 0 {
						meanwhile = meanwhile || strings.Contains(r.Output(), "second gateways carry")
					}
					return false, nil, nil
				})
			})
			got, err := Connect(t.Context(), o, r)
			require.NoError(t, err)
			if meanwhile != c.withSecond {
				t.Errorf("reported before the replacement that second gateways carry packets: %t, want %t", meanwhile, c.withSecond)
			}
			for _, action := range []kube.Action{kube.Created, kube.Deleted} {
				if listed := countOf(got.Objects, "gateway2-b", action); (listed > 0) != c.withSecond {
					t.Errorf("the result lists the second gateway of cluster a %d times as %s, want: %t", listed, action, c.withSecond)
				}
			}
			if withSecond, seen := replaced(); !seen || withSecond != c.withSecond {
				t.Errorf("replaced: %t; a second gateway had a tunnel: %t, want %t", seen, withSecond, c.withSecond)
			}
			if !got.Changed {
				t.Error("no changes in the result")
			}
			for _, w := range []*fakecluster.Cluster{a, b} {
				if g := w.Peering(t).Gateways; len(g) != 1 || g[0].Temporary {
					t.Errorf("cluster %s: gateways %+v", w.Context, g)
				}
			}
		})
	}
}

// countOf returns how often changes contain a Deployment.
func countOf(changes []kube.Change, name string, action kube.Action) (n int) {
	for _, c := range changes {
		if c.Kind == "Deployment" && c.Name == name && c.Action == action {
			n++
		}
	}
	return n
}

// TestSecondGatewayWithoutRoom: a second gateway that never carries packets delays an update, does not prevent it, and
// is removed.
func TestSecondGatewayWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		o := connectOptions(a, b)
		fakecluster.Must(t, Connect, o)
		a.Set(func() { a.NotReportingGateway, a.Interval = records.GatewayID{Peering: "b", Number: 2}, slowly })
		b.Set(func() { b.Interval = slowly })
		o.Image, o.Update = "liqonet:2", true
		r := &fakecluster.Recorder{}
		got, err := Connect(t.Context(), o, r)
		require.NoError(t, err)
		if !strings.Contains(r.Output(), "no second gateway carries packets") {
			t.Errorf("notes %q", r.Lines())
		}
		if made, gone := countOf(got.Objects, "gateway2-b", kube.Created), countOf(got.Objects, "gateway2-b", kube.Deleted); made != 1 || gone != 1 {
			t.Errorf("the result lists the second gateway as created %d times, as deleted %d times, want one of each", made, gone)
		}
		checkGatewayCounts(t, a, b, 1, 1)
	})
}

// TestInterruptedHandOver: an update that is killed at any write is completed by the next one, without a remaining
// second gateway.
func TestInterruptedHandOver(t *testing.T) {
	t.Parallel()
	total := 0
	for n := 0; n <= total; n += 1 + total/8 { // 0 only counts writes
		bubble.Run(t, fmt.Sprintf("write%02d", n), func(t *testing.T) {
			a, b, _ := rotated(t, 1, 1)
			update := unchangedOptions(a, b)
			update.Image, update.Update = "liqonet:2", true
			total = max(total, killedAt(t, n, a, b, doing(Connect, update)))
			replaced := watchReplaced(b, "a")
			fakecluster.Must(t, Connect, update)
			if withSecond, seen := replaced(); seen && !withSecond {
				t.Error("the only gateway was replaced, and no second one had a tunnel")
			}
			checkGatewayCounts(t, a, b, 1, 1)
		})
	}
	if total < 10 {
		t.Errorf("only %d writes seen", total)
	}
}

// TestRotationOfEarlierTemplates: an only gateway of a release with another template is not replaced before a second
// one has a tunnel.
func TestRotationOfEarlierTemplates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, before := rotated(t, 1, 1)
		ofOtherTemplate(t, a, "b")
		ofOtherTemplate(t, b, "a")
		for w, peering := range map[*fakecluster.Cluster]string{a: "b", b: "a"} {
			replaced := watchReplaced(w, peering)
			defer func() {
				if withSecond, seen := replaced(); seen && !withSecond {
					t.Errorf("cluster %s: the only gateway is replaced while no other has a tunnel", w.Context)
				}
			}()
		}
		fakecluster.Must(t, RotateKeys, rotateOptions(a, b))
		checkRotated(t, a, b, 1, 1, before)
	})
}
