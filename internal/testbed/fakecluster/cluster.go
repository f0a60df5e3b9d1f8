package fakecluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
)

// Cluster is a cluster with a fake API server, fake controllers and fake helpers. Set changes its fields while it runs.
type Cluster struct {
	Helpers
	Fake *fake.Clientset

	mu sync.Mutex
	// PodFailure is the reason why helper pods do not start; "": they run. NotReportingPodFailure is that of the nodes
	// in NotReporting.
	PodFailure, NotReportingPodFailure string
	Paused                             bool          // controllers and helpers do nothing
	Interval                           time.Duration // the least between two ticks
	lastTick                           time.Time
	// KernelRemains is the kernel state that verification finds, by node.
	KernelRemains map[string]string
}

// Node is a node of a Cluster.
type Node struct {
	Name, PodCIDR, Address string
	NotReady               bool
}

// New returns a cluster; its helpers report from all nodes.
func New(context string, nodes ...Node) *Cluster {
	objects := make([]runtime.Object, 0, 2+len(nodes))
	objects = append(objects,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: types.UID("uid-" + context)}},
		&networkingv1.ServiceCIDR{
			ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"},
			Spec:       networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/16"}},
		})
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
		objects = append(objects, n.Object())
	}
	c, api := NewAPIServer(Config{Context: context, Objects: objects})
	c.Locking.Timeout = 3 * time.Minute // a test in which a run waits for itself ends
	return &Cluster{Helpers: *NewHelpers(c, names...), Fake: api}
}

// Object returns the node as the API server has it.
func (n Node) Object() *corev1.Node {
	status := corev1.ConditionTrue
	if n.NotReady {
		status = corev1.ConditionUnknown
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name},
		Spec:       corev1.NodeSpec{PodCIDR: n.PodCIDR, PodCIDRs: []string{n.PodCIDR}},
		Status: corev1.NodeStatus{
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: n.Address}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}},
		},
	}
}

// Pair returns clusters "a" and "b" with two nodes each and the same pod CIDR.
func Pair() (a, b *Cluster) {
	a = New("a",
		Node{Name: "a1", PodCIDR: "10.244.1.0/24", Address: "172.31.1.11"},
		Node{Name: "a2", PodCIDR: "10.244.2.0/24", Address: "172.31.1.12"})
	b = New("b",
		Node{Name: "b1", PodCIDR: "10.244.1.0/24", Address: "172.31.2.11"},
		Node{Name: "b2", PodCIDR: "10.244.2.0/24", Address: "172.31.2.12"})
	RunGateways(a, b)
	return a, b
}

// RunPair returns the clusters of Pair, which run until the test ends.
func RunPair(t *testing.T) (a, b *Cluster) {
	a, b = Pair()
	Run(t, a, b)
	return a, b
}

// Third returns cluster "c", with a node and the pod CIDR of those of Pair.
func Third() *Cluster {
	return New("c", Node{Name: "c1", PodCIDR: "10.244.1.0/24", Address: "172.31.3.11"})
}

// Run runs controllers and helpers until the test ends.
func Run(t *testing.T, clusters ...*Cluster) {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for _, c := range clusters {
		group.Go(func() {
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				if err := c.Tick(ctx); err != nil && ctx.Err() == nil {
					t.Errorf("helpers of cluster %s: %v", c.Context, err)
					return
				}
			}
		})
	}
	t.Cleanup(func() { cancel(); group.Wait() })
}

// Set changes fields of the cluster between two ticks.
func (c *Cluster) Set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// Pause stops controllers and helpers of clusters.
func Pause(clusters ...*Cluster) {
	for _, c := range clusters {
		c.Set(func() { c.Paused = true })
	}
}

// Tick runs every controller and helper once.
func (c *Cluster) Tick(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Paused || time.Since(c.lastTick) < c.Interval {
		return nil
	}
	c.lastTick = time.Now()
	if err := c.controllers(ctx); err != nil {
		return err
	}
	if c.PodFailure != "" || !c.installed(ctx) {
		return nil
	}
	err := c.Helpers.Tick(ctx)
	if !c.installed(ctx) { // its end would have waited for these writes
		leases, errList := inventory.Leases(ctx, c.Cluster)
		err = errors.Join(err, errList)
		for _, l := range leases {
			err = errors.Join(err, c.Fake.CoordinationV1().Leases(c.Namespace).Delete(ctx, l.Name, metav1.DeleteOptions{}))
		}
	}
	return err
}

// overtaken reports whether another writer has changed or deleted the object since it was read.
func overtaken(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

// installed reports whether the DaemonSet of node helpers may exist: an error is no proof that it does not.
func (c *Cluster) installed(ctx context.Context) bool {
	_, err := c.Fake.AppsV1().DaemonSets(c.Namespace).Get(ctx, records.NodeName, metav1.GetOptions{})
	return !apierrors.IsNotFound(err)
}

// controllers create pods, and allocate node ports.
func (c *Cluster) controllers(ctx context.Context) error {
	sets, err := c.Fake.AppsV1().DaemonSets(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if err := c.podsOf(ctx, sets.Items); err != nil {
		return err
	}
	for _, set := range sets.Items {
		served := int32(len(c.Nodes))
		if set.Status.NumberReady != served {
			set.Status = appsv1.DaemonSetStatus{DesiredNumberScheduled: served, NumberReady: served, UpdatedNumberScheduled: served}
			if _, err := c.Fake.AppsV1().DaemonSets(c.Namespace).UpdateStatus(ctx, &set, metav1.UpdateOptions{}); err != nil && !overtaken(err) {
				return err
			}
		}
	}
	return errors.Join(c.deployments(ctx), c.services(ctx))
}

// podsOf creates the pods of DaemonSets, one a node, and deletes all others.
func (c *Cluster) podsOf(ctx context.Context, sets []appsv1.DaemonSet) error {
	client := c.Fake.CoreV1().Pods(c.Namespace)
	existing, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	wanted := make(map[string]*corev1.Pod)
	for i := range sets {
		for _, node := range c.Nodes {
			pod := c.pod(&sets[i], node)
			wanted[pod.Name] = pod
		}
	}
	for _, pod := range existing.Items {
		next := wanted[pod.Name]
		if next != nil && next.Annotations[records.AnnotationRun] == pod.Annotations[records.AnnotationRun] {
			delete(wanted, pod.Name)
		} else if pod.DeletionTimestamp == nil { // a pod of a lost node stays
			err = errors.Join(err, client.Delete(ctx, pod.Name, metav1.DeleteOptions{}))
		}
	}
	for _, pod := range wanted {
		_, e := client.Create(ctx, pod, metav1.CreateOptions{})
		err = errors.Join(err, e)
	}
	return err
}

func (c *Cluster) pod(set *appsv1.DaemonSet, node string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: set.Name + "-" + node, Labels: set.Spec.Template.Labels, Annotations: set.Spec.Template.Annotations},
		Spec:       corev1.PodSpec{NodeName: node, HostNetwork: true},
	}
	reason := c.PodFailure
	if reason == "" && c.NotReporting[node] {
		reason = c.NotReportingPodFailure
	}
	switch {
	case reason != "":
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "no such image"},
		}}}
	case set.Name == records.VerifyName:
		if slices.Contains(set.Spec.Template.Spec.InitContainers[0].Args, "--remove") {
			delete(c.KernelRemains, node)
		}
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Message: c.KernelRemains[node]},
		}}}
	}
	return pod
}

func (c *Cluster) deployments(ctx context.Context) error {
	list, err := c.Fake.AppsV1().Deployments(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, d := range list.Items {
		if d.Status.AvailableReplicas == 1 {
			continue
		}
		d.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
		if _, err := c.Fake.AppsV1().Deployments(c.Namespace).UpdateStatus(ctx, &d, metav1.UpdateOptions{}); err != nil && !overtaken(err) {
			return err
		}
	}
	return nil
}

// services allocates node ports, as an API server does.
func (c *Cluster) services(ctx context.Context) error {
	list, err := c.Fake.CoreV1().Services(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, svc := range list.Items {
		for i, port := range svc.Spec.Ports {
			if svc.Spec.Type != corev1.ServiceTypeNodePort || port.NodePort != 0 {
				continue
			}
			patch := fmt.Sprintf(`[{"op": "test", "path": "/spec/ports/%[1]d/name", "value": %[2]q}, {"op": "add", "path": "/spec/ports/%[1]d/nodePort", "value": %[3]d}]`,
				i, port.Name, nodePort(port.Port))
			_, err := c.Fake.CoreV1().Services(c.Namespace).Patch(ctx, svc.Name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
			if err != nil && !overtaken(err) {
				return err
			}
		}
	}
	return nil
}

// nodePort returns a node port for a port of a Service, within the default range of API servers. For the default port
// of gateways it is 30840.
func nodePort(port int32) int32 { return 30000 + (port+1592)%2768 }

// StoredReports returns the reports of nodes without a request: reactors cannot make one.
func (c *Cluster) StoredReports(t *testing.T) []records.Node {
	list, err := c.Fake.Tracker().List(coordinationv1.SchemeGroupVersion.WithResource("leases"),
		coordinationv1.SchemeGroupVersion.WithKind("Lease"), c.Namespace)
	if err != nil {
		t.Error(err)
		return nil
	}
	var leases []*coordinationv1.Lease
	for i := range list.(*coordinationv1.LeaseList).Items {
		leases = append(leases, &list.(*coordinationv1.LeaseList).Items[i])
	}
	reports, err := inventory.Reports(leases)
	assert.NoError(t, err)
	return reports
}

// Left lists liqonet's objects of the cluster, cluster-wide ones included.
func (c *Cluster) Left(t *testing.T) []string {
	t.Helper()
	c.mu.Lock() // not during a tick
	defer c.mu.Unlock()
	objects, err := c.List(t.Context(), records.LabelComponent)
	require.NoError(t, err)
	names := make([]string, 0, len(objects))
	for _, o := range objects {
		names = append(names, fmt.Sprintf("%T %s", o, o.GetName()))
	}
	selector := metav1.ListOptions{LabelSelector: records.LabelComponent}
	namespaces, err := c.Fake.CoreV1().Namespaces().List(t.Context(), selector)
	require.NoError(t, err)
	for _, o := range namespaces.Items {
		names = append(names, "Namespace "+o.Name)
	}
	roles, err := c.Fake.RbacV1().ClusterRoles().List(t.Context(), selector)
	require.NoError(t, err)
	for _, o := range roles.Items {
		names = append(names, "ClusterRole "+o.Name)
	}
	return names
}

// ExpectNothingLeft fails for clusters in which Left finds objects.
func ExpectNothingLeft(t *testing.T, clusters ...*Cluster) {
	t.Helper()
	for _, c := range clusters {
		if left := c.Left(t); len(left) > 0 {
			t.Errorf("left in cluster %s: %v", c.Context, left)
		}
	}
}
