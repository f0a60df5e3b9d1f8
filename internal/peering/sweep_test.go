package peering

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/removal"
	"liqonet.io/liqonet/templates"
)

func sweepOptions(w *world) removal.SweepOptions {
	return removal.SweepOptions{Cluster: w.Cluster, Image: "liqonet:1", Timeout: time.Minute}
}

// swept runs a sweep and compares its result.
func (w *world) swept(t *testing.T, o removal.SweepOptions, want removal.SweepResult) {
	t.Helper()
	got, err := removal.Sweep(t.Context(), o, &recorder{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(removal.SweepResult{}, "Stages"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func TestSweepTellsWhatNodesHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := twoWorlds()
		live(t, a)
		a.set(func() { a.kernels = map[string]string{"a2": "rule 7600\nlink lqn-overlay\n"} })
		a.swept(t, sweepOptions(a), removal.SweepResult{Nodes: []removal.NodeSwept{{Name: "a1"}, {Name: "a2", Left: []string{"rule 7600", "link lqn-overlay"}}}})
		if left := a.left(t); len(left) > 0 {
			t.Errorf("the look left %v", left)
		}
	})
}

func TestSweepTellsObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connected(t)
		got, err := removal.Sweep(t.Context(), sweepOptions(a), &recorder{})
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range []string{"ConfigMap liqonet/fabric", "Secret liqonet/peering-b", "ClusterRole liqonet:liqonet:node", "Namespace liqonet"} {
			if !slices.Contains(got.Objects, object) {
				t.Errorf("%s is not among %q", object, got.Objects)
			}
		}
		if f, err := inventory.Fabric(t.Context(), a.Cluster); f == nil || err != nil || got.Clean() {
			t.Errorf("the look removed the fabric: %v, %v", f, err)
		}
	})
}

func TestSweepDoesNotEmptyWhatIsInstalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connected(t)
		o := sweepOptions(a)
		o.Remove = true
		_, err := removal.Sweep(t.Context(), o, &recorder{})
		if err == nil || !strings.Contains(hint.Of(err), "network reset") {
			t.Errorf("error %v, hint %q", err, hint.Of(err))
		}
	})
}

func TestSweepDoesNotWaitForNodesThatAreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newWorld("a",
			worldNode{name: "a1", podCIDR: "10.244.1.0/24", address: "172.31.1.11"},
			worldNode{name: "a2", podCIDR: "10.244.2.0/24", address: "172.31.1.12", unready: true})
		a.nodes = a.nodes[:1]
		live(t, a)
		want := removal.SweepResult{Nodes: []removal.NodeSwept{{Name: "a1"}}, Silent: []string{"a2"}}
		a.swept(t, sweepOptions(a), want)
		if want.Clean() {
			t.Error("a node that was not looked at counts as clean")
		}
	})
}

// What a sweep makes goes even if it fails.
func TestFailedSweepLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := twoWorlds()
		live(t, a)
		a.set(func() { a.stuck = "ImagePullBackOff" })
		_, err := removal.Sweep(t.Context(), sweepOptions(a), &recorder{})
		if err == nil || !strings.Contains(err.Error(), "ImagePullBackOff") {
			t.Errorf("error %v", err)
		}
		if left := a.left(t); len(left) > 0 {
			t.Errorf("left %v", left)
		}
	})
}

func TestKilledSweepCanBeRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := twoWorlds()
		live(t, a)
		base, err := templates.Base(templates.BaseValues{Namespace: a.Namespace, Image: "liqonet:1"})
		if err != nil {
			t.Fatal(err)
		}
		set, err := templates.Sweep(templates.SweepValues{Namespace: a.Namespace, Image: "liqonet:1"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Apply(t.Context(), base[0], set); err != nil {
			t.Fatal(err)
		}
		a.swept(t, sweepOptions(a), removal.SweepResult{Objects: []string{"Namespace liqonet"}, Nodes: []removal.NodeSwept{{Name: "a1"}, {Name: "a2"}}})
	})
}

// A namespace that was there before stays.
func TestSweepKeepsNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := twoWorlds()
		live(t, a)
		own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.Namespace}}
		if _, err := a.kube.CoreV1().Namespaces().Create(t.Context(), own, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		a.swept(t, sweepOptions(a), removal.SweepResult{Nodes: []removal.NodeSwept{{Name: "a1"}, {Name: "a2"}}})
		if _, err := a.kube.CoreV1().Namespaces().Get(t.Context(), a.Namespace, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		sets, err := a.kube.AppsV1().DaemonSets(a.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: records.LabelComponent})
		if err != nil || len(sets.Items) > 0 {
			t.Errorf("left %v, %v", sets.Items, err)
		}
	})
}
