package removal_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/connected"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/templates"
)

func verifyOptions(w *fakecluster.Cluster) removal.ResetOptions {
	return removal.ResetOptions{Cluster: w.Cluster, VerifyOnly: true, Image: "liqonet:1", Timeout: time.Minute}
}

// expectRemains runs a reset and compares the remains in its result.
func expectRemains(t *testing.T, o removal.ResetOptions, want removal.Remains) {
	t.Helper()
	got := fakecluster.Must(t, removal.Reset, o)
	assert.Equal(t, "result", &want, got.Remains, cmpopts.EquateEmpty())
}

func TestVerifyReportsNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := fakecluster.RunPair(t)
		a.Set(func() { a.KernelRemains = map[string]string{"a2": "rule 7600\nlink lqn-overlay\n"} })
		expectRemains(t, verifyOptions(a), removal.Remains{Nodes: []removal.NodeRemains{{Name: "a1"}, {Name: "a2", Left: []string{"rule 7600", "link lqn-overlay"}}}})
		fakecluster.ExpectNothingLeft(t, a)
	})
}

func TestVerifyReportsObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connected.New(t)
		got := fakecluster.Must(t, removal.Reset, verifyOptions(a))
		for _, object := range []string{"ConfigMap liqonet/fabric", "Secret liqonet/peering-b", "ClusterRole liqonet:liqonet:node", "Namespace liqonet"} {
			if !slices.Contains(got.Remains.Objects, object) {
				t.Errorf("%s is not among %q", object, got.Remains.Objects)
			}
		}
		if f, err := inventory.Fabric(t.Context(), a.Cluster); f == nil || err != nil || got.Changed || got.Remains.None() {
			t.Errorf("the look removed the fabric: %v, %v", f, err)
		}
	})
}

// TestResetVerifiesNodes: state that helpers should have removed is reported. Without helpers, or with force, it is
// removed.
func TestResetVerifiesNodes(t *testing.T) {
	left := removal.Remains{Nodes: []removal.NodeRemains{{Name: "a1"}, {Name: "a2", Left: []string{"rule 7600"}}}}
	none := removal.Remains{Nodes: []removal.NodeRemains{{Name: "a1"}, {Name: "a2"}}}
	for name, c := range map[string]struct {
		installed, force bool
		want             removal.Remains
	}{
		"installed": {true, false, left}, "installed, by force": {true, true, none}, "not installed": {false, false, none},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			a, _ := fakecluster.RunPair(t)
			o := verifyOptions(a)
			o.VerifyOnly, o.Force = false, c.force
			if c.installed {
				_, err := connected.Init(t, a, nil)
				require.NoError(t, err)
				o.Image = "" // the installation's image is used
			}
			a.Set(func() { a.KernelRemains = map[string]string{"a2": "rule 7600\n"} })
			expectRemains(t, o, c.want)
			fakecluster.ExpectNothingLeft(t, a)
		})
	}
}

// TestResetRemovesWhatItCannotVerify: a verification pod that cannot start does not prevent the deletion of objects.
func TestResetRemovesWhatItCannotVerify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connected.New(t)
		o := verifyOptions(a)
		o.VerifyOnly, o.Force = false, true
		a.Fake.PrependReactor("patch", "daemonsets", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if action.(clienttesting.PatchAction).GetName() == records.VerifyName {
				a.Set(func() { a.PodFailure = "ImagePullBackOff" })
			}
			return false, nil, nil
		})
		_, err := removal.Reset(t.Context(), o, &fakecluster.Recorder{})
		if err == nil || !strings.Contains(err.Error(), "not verified") || !strings.Contains(err.Error(), "ImagePullBackOff") {
			t.Errorf("error %v", err)
		}
		fakecluster.ExpectNothingLeft(t, a)
		o.Image, o.NoImage = "", errors.New("no image")
		if _, err = removal.Reset(t.Context(), o, &fakecluster.Recorder{}); !errors.Is(err, o.NoImage) {
			t.Errorf("without an image: error %v", err)
		}
		if _, err = removal.PlanReset(t.Context(), o, &fakecluster.Recorder{}); err != nil {
			t.Errorf("a plan without an image: %v", err)
		}
	})
}

func TestVerifyDoesNotWaitForNodesThatAreNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := fakecluster.New("a",
			fakecluster.Node{Name: "a1", PodCIDR: "10.244.1.0/24", Address: "172.31.1.11"},
			fakecluster.Node{Name: "a2", PodCIDR: "10.244.2.0/24", Address: "172.31.1.12", NotReady: true})
		a.Nodes = a.Nodes[:1]
		fakecluster.Run(t, a)
		expectRemains(t, verifyOptions(a), removal.Remains{Nodes: []removal.NodeRemains{{Name: "a1"}}, Silent: []string{"a2"}})
	})
}

// TestFailedVerificationLeavesNothing: the objects of a verification are deleted even if it fails.
func TestFailedVerificationLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := fakecluster.RunPair(t)
		a.Set(func() { a.PodFailure = "ImagePullBackOff" })
		_, err := removal.Reset(t.Context(), verifyOptions(a), &fakecluster.Recorder{})
		assert.ErrorContains(t, "reset", err, "ImagePullBackOff")
		fakecluster.ExpectNothingLeft(t, a)
	})
}

func TestKilledVerificationCanBeRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := fakecluster.RunPair(t)
		base, err := templates.Base(templates.BaseValues{Namespace: a.Namespace, Image: "liqonet:1"})
		require.NoError(t, err)
		set, err := templates.Verify(templates.VerifyValues{Namespace: a.Namespace, Image: "liqonet:1"})
		require.NoError(t, err)
		_, err = a.Apply(t.Context(), base[0], set)
		require.NoError(t, err)
		expectRemains(t, verifyOptions(a), removal.Remains{Objects: []string{"Namespace liqonet"}, Nodes: []removal.NodeRemains{{Name: "a1"}, {Name: "a2"}}})
	})
}

// TestVerifyKeepsNamespace: an existing namespace is kept.
func TestVerifyKeepsNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := fakecluster.RunPair(t)
		own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.Namespace}}
		_, err := a.Fake.CoreV1().Namespaces().Create(t.Context(), own, metav1.CreateOptions{})
		require.NoError(t, err)
		expectRemains(t, verifyOptions(a), removal.Remains{Nodes: []removal.NodeRemains{{Name: "a1"}, {Name: "a2"}}})
		_, err = a.Fake.CoreV1().Namespaces().Get(t.Context(), a.Namespace, metav1.GetOptions{})
		assert.NoError(t, err)
		sets, err := a.Fake.AppsV1().DaemonSets(a.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: records.LabelComponent})
		if err != nil || len(sets.Items) > 0 {
			t.Errorf("left %v, %v", sets.Items, err)
		}
	})
}
