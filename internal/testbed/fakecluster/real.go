//go:build lab

package fakecluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
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

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// Real is a real control plane with a fake node and fake helpers. All else (API server, garbage collection, namespaces,
// scheduler) is real.
type Real struct {
	Name   string
	Config *rest.Config
	Kube   *kubernetes.Clientset
	// NotReady is the state of the node from its next heartbeat.
	NotReady atomic.Bool

	node  string
	crowd []string // names of the nodes of AddNodes
}

const (
	tickInterval      = time.Second
	heartbeatInterval = 3 * time.Second
)

// OpenReal returns the clusters of $KUBECONFIG, a and b, each with a node that is Ready until the test ends.
func OpenReal(t *testing.T) []*Real {
	t.Helper()
	var all []*Real
	for _, name := range []string{"a", "b"} {
		loader := &clientcmd.ClientConfigLoadingRules{ExplicitPath: os.Getenv("KUBECONFIG")}
		config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(loader, &clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
		require.NoError(t, err)
		config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
		r := &Real{Name: name, Config: config, Kube: Client(t, config), node: name + "-1"}
		r.join(t)
		all = append(all, r)
	}
	return all
}

// join creates the node and runs its fake kubelet.
func (r *Real) join(t *testing.T) {
	t.Helper()
	if _, err := r.Kube.CoreV1().Nodes().Create(t.Context(), r.object(), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	r.Heartbeat(t.Context(), t)
	wait.Until(t, "no taints of a new node", wait.Timeout, func() bool {
		node, err := r.Kube.CoreV1().Nodes().Get(t.Context(), r.node, metav1.GetOptions{})
		return err == nil && len(node.Spec.Taints) == 0
	})
	every(t, heartbeatInterval, nil, func(ctx context.Context) { r.Heartbeat(ctx, t) })
	pods := informers.NewSharedInformerFactory(r.Kube, 0).Core().V1().Pods().Informer()
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { r.serve(t.Context(), o) },
		UpdateFunc: func(_, o any) { r.serve(t.Context(), o) },
	})
	require.NoError(t, err)
	go pods.RunWithContext(t.Context())
}

// object returns the node.
func (r *Real) object() *corev1.Node {
	address := map[string]string{"a": "172.31.1.11", "b": "172.31.2.11"}[r.Name]
	room := corev1.ResourceList{
		corev1.ResourcePods: resource.MustParse("1000"), corev1.ResourceCPU: resource.MustParse("100"), corev1.ResourceMemory: resource.MustParse("100Gi"),
	}
	ready := corev1.ConditionTrue
	if r.NotReady.Load() {
		ready = corev1.ConditionFalse
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: r.node, Labels: map[string]string{corev1.LabelOSStable: string(corev1.Linux)}},
		Spec:       corev1.NodeSpec{PodCIDR: "10.244.0.0/24", PodCIDRs: []string{"10.244.0.0/24"}},
		Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}, Capacity: room, Allocatable: room,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: metav1.Now(), Reason: "Fake"}},
		},
	}
}

// Heartbeat reports the state of the node. It is a patch: an update would remove what controllers have added.
func (r *Real) Heartbeat(ctx context.Context, t *testing.T) {
	patch, err := json.Marshal(map[string]any{"status": r.object().Status})
	if err != nil {
		t.Error(err)
		return
	}
	_, err = r.Kube.CoreV1().Nodes().Patch(ctx, r.node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && ctx.Err() == nil {
		// The next one may succeed. A node without heartbeats becomes not Ready, which the test sees.
		t.Logf("node %s: %v", r.node, err)
	}
}

// serve does the work of a kubelet: it removes a pod that is being deleted, and makes every other one ready. Its init
// containers have exited without a message.
func (r *Real) serve(ctx context.Context, object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	// The pod's next event retries what fails. If there is none, the test that waits for the pod fails.
	pods := r.Kube.CoreV1().Pods(pod.Namespace)
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

// Open returns the cluster with a namespace for liqonet.
func (r *Real) Open(t *testing.T, namespace string) *kube.Cluster {
	t.Helper()
	c, err := kube.Open(r.Config, kube.Options{Context: r.Name, Namespace: namespace})
	require.NoError(t, err)
	return c
}

// RunHelpers runs the fake helpers of an installation until the test ends. They reconcile at every change of their
// objects, and at an interval, because reports must be recent.
func (r *Real) RunHelpers(t *testing.T, namespace string) *Helpers {
	t.Helper()
	changed := make(chan struct{}, 1)
	poke := func(any) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	selector := records.LabelComponent + " in (" + records.ComponentFabric + "," + records.ComponentPeering + "," + records.ComponentGateway + ")"
	factory := informers.NewSharedInformerFactoryWithOptions(r.Kube, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = selector }))
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
	h := NewHelpers(r.Open(t, namespace), slices.Sorted(slices.Values(append([]string{r.node}, r.crowd...)))...)
	h.ReportsChanges = len(r.crowd) > 0
	every(t, tickInterval, changed, func(ctx context.Context) {
		err := h.Tick(ctx)
		// The API server refuses objects in a namespace that is being deleted. The next tick retries all else: the test
		// sees reports that are missing.
		if err != nil && !apierrors.IsForbidden(err) && ctx.Err() == nil {
			t.Logf("helpers of cluster %s: %v", r.Name, err)
		}
	})
	return h
}

// every calls a function at an interval, and when a channel has something, until the test ends.
func every(t *testing.T, interval time.Duration, now <-chan struct{}, call func(context.Context)) {
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			case <-now:
			}
			call(ctx)
		}
	})
	t.Cleanup(func() { cancel(); group.Wait() })
}

// Left lists the namespace of an installation and its cluster-wide objects.
func (r *Real) Left(t *testing.T, namespace string) []string {
	t.Helper()
	ctx := t.Context()
	var names []string
	add := func(kind string, err error, all ...string) {
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("look for %s in cluster %s: %v", kind, r.Name, err)
		}
		for _, name := range all {
			names = append(names, r.Name+": "+kind+" "+name)
		}
	}
	if _, err := r.Kube.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		add("Namespace", err, namespace)
	}
	role := "liqonet:" + namespace + ":" + records.NodeName
	if _, err := r.Kube.RbacV1().ClusterRoles().Get(ctx, role, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		add("ClusterRole", err, role)
	}
	if _, err := r.Kube.RbacV1().ClusterRoleBindings().Get(ctx, role, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		add("ClusterRoleBinding", err, role)
	}
	slices.Sort(names)
	return names
}

// Client returns a client that shares no connection with others.
func Client(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(rest.CopyConfig(config))
	require.NoError(t, err)
	return client
}

// AddNodes adds nodes until there are so many. They are Ready and send no heartbeats.
func (r *Real) AddNodes(t *testing.T, nodes int) {
	t.Helper()
	network := map[string]int{"a": 16, "b": 24}[r.Name] // the second byte of their addresses
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(16)
	for i := len(r.crowd) + 1; i < nodes; i++ {
		node := r.object()
		node.Name = fmt.Sprintf("%s-%d", r.Name, i+1)
		node.Spec.PodCIDR = fmt.Sprintf("10.244.%d.%d/28", 1+i>>4, i&0xf<<4) // 4,080 of these
		node.Spec.PodCIDRs = []string{node.Spec.PodCIDR}
		node.Status.Addresses[0].Address = fmt.Sprintf("172.%d.%d.%d", network, i>>8, i&0xff)
		r.crowd = append(r.crowd, node.Name)
		group.Go(func() error {
			// With its status, as kubelets do.
			_, err := r.Kube.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
			return err
		})
	}
	require.NoError(t, group.Wait())
}
