package pathtest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/observe/read"
	"liqonet.io/liqonet/internal/pathtest/probe"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/templates"
)

// fakeCluster is a connected cluster with two nodes and fake kubelets.
type fakeCluster struct {
	*kube.Cluster

	api           *fake.Clientset
	mu            sync.Mutex
	stuck         string        // reason for which pods cannot start; "": they run
	hung          bool          // probes do not end
	podsIsolated  bool          // pods do not reach pods of the peer
	nodesIsolated bool          // nodes do not reach nodes of the peer
	sources       [2]netip.Addr // of pods and nodes, as the peer observes them
	probed        func()        // called when a probe runs
	run           string        // ID of the test that created the running probe
	hungRun       string        // ID of the test whose probes do not end
}

// fromB turns the records of cluster a into those of its peer b.
var fromB = strings.NewReplacer(
	"000000000001", "000000000002", "000000000002", "000000000001", "name: a", "name: b", "name: b", "name: a",
	"10.71.", "10.72.", "10.72.", "10.71.", "10.81.", "10.82.", "10.82.", "10.81.")

func newFakeCluster(t *testing.T, name string, sources ...string) *fakeCluster {
	t.Helper()
	objects := []runtime.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: records.DefaultNamespace}}}
	for file, object := range map[string]string{"fabric": "fabric", "peering-b": "peering-" + map[string]string{"a": "b", "b": "a"}[name]} {
		data, err := os.ReadFile("../../ipam/translate/testdata/" + file + ".yaml")
		require.NoError(t, err)
		text := string(data)
		if name == "b" {
			text = fromB.Replace(text)
		}
		objects = append(objects, &corev1.ConfigMap{ObjectMeta: inventory.Meta(records.DefaultNamespace, object), Data: map[string]string{records.DataKey: text}})
	}
	for i := range 2 {
		node := fmt.Sprintf("%s-%d", name, i+1)
		report, err := records.Encode(records.Node{Version: records.SchemaVersion, Name: node, Number: i + 1, MTU: 1500})
		require.NoError(t, err)
		objects = append(objects, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: node},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		}, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Name: records.NodeLeaseName(i + 1), Namespace: records.DefaultNamespace,
				Labels: map[string]string{records.LabelComponent: records.ComponentNode}, Annotations: map[string]string{records.AnnotationNode: report},
			},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &node},
		})
	}
	c, api := fakecluster.NewAPIServer(fakecluster.Config{Context: name, Objects: objects})
	w := &fakeCluster{Cluster: c, api: api}
	// A DaemonSet is gone when its pods are.
	api.PrependReactor("delete", "daemonsets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		for i := range 2 {
			if set, ok := action.(clienttesting.DeleteAction); ok {
				_ = api.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), w.Namespace, fmt.Sprintf("%s-%s-%d", set.GetName(), name, i+1))
			}
		}
		return false, nil, nil
	})
	for i, s := range sources {
		w.sources[i] = netip.MustParseAddr(s)
	}
	return w
}

// twoClusters returns clusters that translate according to their records.
func twoClusters(t *testing.T) (a, b *fakeCluster) {
	t.Helper()
	return newFakeCluster(t, "a", "10.72.0.5", "10.82.0.1"), newFakeCluster(t, "b", "10.71.0.5", "10.81.0.1")
}

// runKubelets runs fake kubelets until the test ends.
func runKubelets(t *testing.T, clusters ...*fakeCluster) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for _, w := range clusters {
		group.Go(func() {
			for ctx.Err() == nil {
				if err := w.syncPods(ctx); err != nil && ctx.Err() == nil {
					t.Errorf("kubelets of %s: %v", w.Context, err)
					return
				}
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
	t.Cleanup(func() { cancel(); group.Wait() })
}

// syncPods creates and removes the pods of DaemonSets.
func (w *fakeCluster) syncPods(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	pods := w.api.CoreV1().Pods(w.Namespace)
	there, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	sets, err := w.api.AppsV1().DaemonSets(w.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	wanted := map[string]*corev1.Pod{}
	for _, set := range sets.Items {
		for i := range 2 {
			node := fmt.Sprintf("%s-%d", w.Context, i+1)
			wanted[set.Name+"-"+node] = w.pod(&set, node)
		}
	}
	for _, pod := range there.Items {
		if wanted[pod.Name] == nil {
			// The pods of a DaemonSet that was deleted since the list may not exist any more.
			if e := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{}); !apierrors.IsNotFound(e) {
				err = errors.Join(err, e)
			}
		}
		delete(wanted, pod.Name)
	}
	for _, pod := range wanted {
		_, e := pods.Create(ctx, pod, metav1.CreateOptions{})
		err = errors.Join(err, e)
	}
	return err
}

func (w *fakeCluster) pod(set *appsv1.DaemonSet, node string) *corev1.Pod {
	template := set.Spec.Template.Spec
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: set.Name + "-" + node, Labels: set.Spec.Template.Labels, Annotations: set.Spec.Template.Annotations},
		Spec:       corev1.PodSpec{NodeName: node, HostNetwork: template.HostNetwork},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "fd00::5"}, {IP: "10.244.0.5"}}},
	}
	switch {
	case w.stuck != "":
		pod.Status = corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: w.stuck, Message: "no such image"},
		}}}}
	case len(template.InitContainers) > 0:
		w.run = pod.Annotations[records.AnnotationRun]
		if w.probed != nil {
			w.probed()
		}
		if !w.hung && (w.hungRun == "" || w.hungRun != w.run) {
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{Message: w.report(template.InitContainers[0].Args, template.HostNetwork, node)},
			}}}
		}
	}
	return pod
}

// report returns the report of a probe whose checks all pass, if it queries the translated addresses of the peer's
// pods.
func (w *fakeCluster) report(args []string, host bool, node string) string {
	if slices.Contains(args, "--meter") {
		return w.measured(args, host)
	}
	targets := []probe.Result{{Target: probe.ClusterIP, Source: w.sources[0]}}
	for i, arg := range args {
		if arg == "--pod" {
			name, address, _ := strings.Cut(args[i+1], "=")
			result := probe.Result{Target: name, Source: w.sources[0]}
			if want := map[string]string{"a": "10.71.0.5", "b": "10.72.0.5"}[w.Context]; address != want {
				result.Failed = map[probe.Check]string{probe.TCP: "no pod has the address " + address}
			}
			targets = append(targets, result)
		}
	}
	if host {
		for i := range targets {
			targets[i].Source = w.sources[1]
			if strings.HasSuffix(node, "-2") {
				targets[i].Source = w.sources[1].Next()
			}
		}
	}
	text, _ := probe.Encode(targets)
	return text
}

// testObjects returns the objects of tests in a cluster.
func (w *fakeCluster) testObjects(t *testing.T) (all []string) {
	t.Helper()
	objects, err := w.List(t.Context(), records.LabelComponent)
	require.NoError(t, err)
	endpoints, err := w.api.DiscoveryV1().EndpointSlices(w.Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range endpoints.Items {
		objects = append(objects, &endpoints.Items[i])
	}
	for _, o := range objects {
		if strings.HasPrefix(o.GetName(), "test-") {
			all = append(all, fmt.Sprintf("%T %s", o, o.GetName()))
		}
	}
	return all
}

func options(a, b *fakeCluster) Options {
	return Options{Local: a.Cluster, Remote: b.Cluster, Image: "liqonet:1", Timeout: time.Minute}
}

func expectNothingLeft(t *testing.T, clusters ...*fakeCluster) {
	t.Helper()
	for _, w := range clusters {
		if left := w.testObjects(t); len(left) > 0 {
			t.Errorf("left in %s: %v", w.Context, left)
		}
	}
}

func failures(r Result) (all []Check) {
	for _, c := range r.Checks {
		if c.State == Failed {
			all = append(all, c)
		}
	}
	return all
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoClusters(t)
		runKubelets(t, a, b)
		r, err := Run(t.Context(), options(a, b), progress.Quiet{})
		require.NoError(t, err)
		// Each side has 4 probes, each with 7 checks of 2 pods and 2 checks of the Service.
		if !r.Passed || len(r.Checks) != 2*4*(2*7+2) {
			t.Errorf("passed %v, %d checks, failed: %v", r.Passed, len(r.Checks), failures(r))
		}
		expectNothingLeft(t, a, b)
	})
}

// A wrong source address is a failure, not an error.
func TestRunDetectsWrongSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoClusters(t)
		b.sources[1] = netip.MustParseAddr("172.31.2.11")
		runKubelets(t, a, b)
		r, err := Run(t.Context(), options(a, b), progress.Quiet{})
		if err != nil || r.Passed {
			t.Errorf("passed %v, %v", r.Passed, err)
		}
		for _, c := range r.Checks {
			if failed := c.State == Failed; failed != (c.Name == source && c.From.Cluster == "b" && c.From.Kind == Node) {
				t.Errorf("%+v", c)
			}
		}
	})
}

func TestRunRemovesObjectsOfAKilledRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoClusters(t)
		pods, nodes, err := templates.PathTestProbes(templates.PathTestValues{Namespace: a.Namespace, Image: "liqonet:0", Args: []string{"--pod", "b-1=10.71.0.9"}})
		require.NoError(t, err)
		_, err = a.Apply(t.Context(), pods, nodes)
		require.NoError(t, err)
		right, wrong := a.sources, netip.MustParseAddr("192.0.2.1")
		a.sources = [2]netip.Addr{wrong, wrong} // as observed by the killed test
		require.NoError(t, a.syncPods(t.Context()))
		a.sources = right
		runKubelets(t, a, b)
		if r, err := Run(t.Context(), options(a, b), progress.Quiet{}); err != nil || !r.Passed {
			t.Errorf("failed: %v, %v", failures(r), err)
		}
		expectNothingLeft(t, a, b)
	})
}

// TestConcurrentRuns checks that a test that begins during another one replaces it. The earlier one returns an error
// instead of the results of the later one's pods, and leaves these alone.
func TestConcurrentRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoClusters(t)
		var second sync.WaitGroup
		a.probed = sync.OnceFunc(func() {
			a.hungRun = a.run
			second.Go(func() {
				if r, err := Run(t.Context(), options(a, b), progress.Quiet{}); err != nil || !r.Passed {
					t.Errorf("the second one: failed: %v, %v", failures(r), err)
				}
			})
		})
		runKubelets(t, a, b)
		_, err := Run(t.Context(), options(a, b), progress.Quiet{})
		assert.ErrorContains(t, "the first one", err, "another run of liqoctl")
		second.Wait()
		expectNothingLeft(t, a, b)
	})
}

func TestRunThatFailsLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(a, b *fakeCluster, interrupt func())
		want  string
	}{
		"image":        {func(a, _ *fakeCluster, _ func()) { a.stuck = "ImagePullBackOff" }, "ImagePullBackOff"},
		"interruption": {func(_, b *fakeCluster, interrupt func()) { b.hung, b.probed = true, interrupt }, "context canceled"},
		"timeout":      {func(_, b *fakeCluster, _ func()) { b.hung = true }, "--timeout"},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			a, b := twoClusters(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c.spoil(a, b, cancel)
			runKubelets(t, a, b)
			_, err := Run(ctx, options(a, b), progress.Quiet{})
			assert.ErrorContains(t, "run", err, c.want)
			expectNothingLeft(t, a, b)
		})
	}
}

func TestRunRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoClusters(t)
		o := options(a, b)
		o.Peer = "c"
		_, err := Run(t.Context(), o, progress.Quiet{})
		assert.ErrorContains(t, "another peering", err, `peering "c"`)
		_, err = Run(t.Context(), options(a, a), progress.Quiet{})
		assert.ErrorContains(t, "one cluster", err, "same cluster")
		_, err = b.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: inventory.Meta(b.Namespace, "peering-a")})
		require.NoError(t, err)
		_, err = Run(t.Context(), options(a, b), progress.Quiet{})
		assert.ErrorContains(t, "one side of a peering", err, `cluster "b" has no peering "a"`)
	})
}

func TestNodesAreSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := twoClusters(t)
		unready := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a-0"}}
		_, err := a.api.CoreV1().Nodes().Create(t.Context(), unready, metav1.CreateOptions{})
		require.NoError(t, err)
		for sample, want := range map[int]string{0: "[a-1 a-2] [a-0] []", 1: "[a-1] [a-0] [a-1]", 2: "[a-1 a-2] [a-0] []", 9: "[a-1 a-2] [a-0] []"} {
			s := &side{cluster: a.Cluster, seen: read.Take(t.Context(), a.Cluster, observe.Nodes)}
			require.NoError(t, s.chooseNodes(sample))
			if got := fmt.Sprint(s.nodes, s.notReady, s.values("i").Nodes); got != want {
				t.Errorf("--nodes %d: %s, want %s", sample, got, want)
			}
		}
	})
}
