//go:build lab

package peering

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// stage is a real control plane without real nodes: one node, and in it every helper, is played. Everything else
// (API server, garbage collection, namespaces, scheduler) is real.
type stage struct {
	name   string
	node   string
	config *rest.Config
	kube   *kubernetes.Clientset
	// crowd are the names of further nodes, which are Ready and give no signs of life.
	crowd []string
	// unready has the node say that it is not Ready.
	unready atomic.Bool
}

// How often the played act, and how old a kubelet's sign of life becomes.
const (
	playEvery = time.Second
	beatEvery = 3 * time.Second
)

// openStages returns the clusters of $KUBECONFIG, a and b, each with a node that is Ready until the test ends.
func openStages(t *testing.T) []*stage {
	t.Helper()
	var all []*stage
	for _, name := range []string{"a", "b"} {
		loader := &clientcmd.ClientConfigLoadingRules{ExplicitPath: os.Getenv("KUBECONFIG")}
		config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(loader, &clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
		if err != nil {
			t.Fatal(err)
		}
		config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
		s := &stage{name: name, node: name + "-1", config: config, kube: labClient(t, config)}
		s.join(t)
		all = append(all, s)
	}
	return all
}

// join makes the node and plays its kubelet.
func (s *stage) join(t *testing.T) {
	t.Helper()
	if _, err := s.kube.CoreV1().Nodes().Create(t.Context(), s.nodeObject(), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	s.beat(t.Context(), t)
	// Without the taints of a node that is new.
	wait.Until(t, "what is made or removed by controllers", wait.Timeout, func() bool {
		node, err := s.kube.CoreV1().Nodes().Get(t.Context(), s.node, metav1.GetOptions{})
		return err == nil && len(node.Spec.Taints) == 0
	})
	play(t, beatEvery, nil, func(ctx context.Context) { s.beat(ctx, t) })
	pods := informers.NewSharedInformerFactory(s.kube, 0).Core().V1().Pods().Informer()
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { s.serve(t.Context(), o) },
		UpdateFunc: func(_, o any) { s.serve(t.Context(), o) },
	})
	if err != nil {
		t.Fatal(err)
	}
	go pods.RunWithContext(t.Context())
}

// nodeObject is the node, which is well.
func (s *stage) nodeObject() *corev1.Node {
	address := map[string]string{"a": "172.31.1.11", "b": "172.31.2.11"}[s.name]
	room := corev1.ResourceList{
		corev1.ResourcePods: resource.MustParse("1000"), corev1.ResourceCPU: resource.MustParse("100"), corev1.ResourceMemory: resource.MustParse("100Gi"),
	}
	ready := corev1.ConditionTrue
	if s.unready.Load() {
		ready = corev1.ConditionFalse
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: s.node, Labels: map[string]string{corev1.LabelOSStable: string(corev1.Linux)}},
		Spec:       corev1.NodeSpec{PodCIDR: "10.244.0.0/24", PodCIDRs: []string{"10.244.0.0/24"}},
		Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}, Capacity: room, Allocatable: room,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: metav1.Now(), Reason: "Played"}},
		},
	}
}

// beat says how the node is, by a patch: an update would take away what controllers have added to it.
func (s *stage) beat(ctx context.Context, t *testing.T) {
	patch, err := json.Marshal(map[string]any{"status": s.nodeObject().Status})
	if err != nil {
		t.Error(err)
		return
	}
	_, err = s.kube.CoreV1().Nodes().Patch(ctx, s.node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && ctx.Err() == nil {
		// The next one may succeed: a node without them is not Ready, which the test sees.
		t.Logf("node %s: %v", s.node, err)
	}
}

// serve does for a pod what a kubelet does: one that is to be deleted goes, every other one is ready at once. Its init
// containers have ended and reported nothing.
func (s *stage) serve(ctx context.Context, object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	// What fails is tried again with the pod's next event; the test that waits for it says so if there is none.
	pods := s.kube.CoreV1().Pods(pod.Namespace)
	switch {
	case pod.DeletionTimestamp != nil:
		_ = pods.Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0))
	case pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodPending:
		pod = pod.DeepCopy()
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
		})
		for _, c := range pod.Spec.InitContainers {
			pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, corev1.ContainerStatus{
				Name: c.Name, Image: c.Image, Ready: true, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}},
			})
		}
		_, _ = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	}
}

// open returns the cluster with its helpers in a namespace.
func (s *stage) open(t *testing.T, namespace string) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Open(s.config, cluster.Options{Context: s.name, Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// playHelpers plays the helpers of an installation until the test ends: at every change of what they follow, and
// now and then, as reports must be fresh.
func (s *stage) playHelpers(t *testing.T, namespace string) *played {
	t.Helper()
	changed := make(chan struct{}, 1)
	poke := func(any) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	followed := records.LabelComponent + " in (" + records.ComponentFabric + "," + records.ComponentPeering + "," + records.ComponentGateway + ")"
	factory := informers.NewSharedInformerFactoryWithOptions(s.kube, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = followed }))
	for _, i := range []cache.SharedIndexInformer{
		factory.Core().V1().ConfigMaps().Informer(), factory.Apps().V1().DaemonSets().Informer(), factory.Apps().V1().Deployments().Informer(),
	} {
		handler := cache.ResourceEventHandlerFuncs{AddFunc: poke, DeleteFunc: poke, UpdateFunc: func(_, o any) { poke(o) }}
		if _, err := i.AddEventHandler(handler); err != nil {
			t.Fatal(err)
		}
	}
	factory.StartWithContext(t.Context())
	t.Cleanup(factory.Shutdown)
	p := newPlayed(s.open(t, namespace), slices.Sorted(slices.Values(append([]string{s.node}, s.crowd...)))...)
	if len(s.crowd) > 0 {
		p.told = make(map[string]told)
	}
	play(t, playEvery, changed, func(ctx context.Context) {
		fabric, err := inventory.Fabric(ctx, p.Cluster)
		var peerings []records.Peering
		if err == nil {
			peerings, err = inventory.Peerings(ctx, p.Cluster)
		}
		if err == nil {
			err = p.act(ctx, fabric, peerings)
		}
		// Nothing can be made in a namespace that is being deleted. Otherwise it is tried again: the test sees reports
		// that are not written.
		if err != nil && !apierrors.IsForbidden(err) && ctx.Err() == nil {
			t.Logf("helpers of cluster %s: %v", s.name, err)
		}
	})
	return &p
}

// play calls act again and again, and for what comes by a channel, until the test ends.
func play(t *testing.T, every time.Duration, now <-chan struct{}, act func(context.Context)) {
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			case <-now:
			}
			act(ctx)
		}
	})
	t.Cleanup(func() { cancel(); group.Wait() })
}

// left names what a cluster has of an installation in a namespace.
func (s *stage) left(t *testing.T, namespace string) []string {
	t.Helper()
	ctx := t.Context()
	var names []string
	add := func(kind string, err error, all ...string) {
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("look for %s in cluster %s: %v", kind, s.name, err)
		}
		for _, name := range all {
			names = append(names, s.name+": "+kind+" "+name)
		}
	}
	if _, err := s.kube.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		add("Namespace", err, namespace)
	}
	role := "liqonet:" + namespace + ":" + records.NodeName
	if _, err := s.kube.RbacV1().ClusterRoles().Get(ctx, role, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		add("ClusterRole", err, role)
	}
	if _, err := s.kube.RbacV1().ClusterRoleBindings().Get(ctx, role, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		add("ClusterRoleBinding", err, role)
	}
	slices.Sort(names)
	return names
}
