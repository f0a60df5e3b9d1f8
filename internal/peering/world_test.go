package peering

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
	"liqonet.io/liqonet/internal/testbed/fakecluster"
)

// world is a cluster whose API server is a fake, and whose controllers and helpers are played by a loop.
type world struct {
	played
	kube *fake.Clientset

	mu    sync.Mutex
	stuck string        // why helper pods cannot start; "": they run
	fails string        // why the helper pod of the nodes that are mute cannot start; "": it runs
	still bool          // nobody acts
	pace  time.Duration // between two acts, at least
	acted time.Time
	// kernels are what is left on nodes, as verification finds.
	kernels map[string]string
}

// worldNode is a node of a world's.
type worldNode struct {
	name, podCIDR, address string
	unready                bool
}

func newWorld(context string, nodes ...worldNode) *world {
	objects := make([]runtime.Object, 0, 2+len(nodes))
	objects = append(objects,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: types.UID("uid-" + context)}},
		&networkingv1.ServiceCIDR{
			ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"},
			Spec:       networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/16"}},
		})
	var names []string
	for _, n := range nodes {
		names = append(names, n.name)
		objects = append(objects, nodeObject(n))
	}
	c, kube := fakecluster.NewAPIServer(fakecluster.Config{Context: context, Objects: objects})
	c.Locking.Timeout = 3 * time.Minute // a test in which a run waits for itself ends
	return &world{played: newPlayed(c, names...), kube: kube}
}

func nodeObject(n worldNode) *corev1.Node {
	status := corev1.ConditionTrue
	if n.unready {
		status = corev1.ConditionUnknown
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.name},
		Spec:       corev1.NodeSpec{PodCIDR: n.podCIDR, PodCIDRs: []string{n.podCIDR}},
		Status: corev1.NodeStatus{
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: n.address}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}},
		},
	}
}

// twoWorlds are clusters "a" and "b" with two nodes each and the same pod CIDR.
func twoWorlds() (a, b *world) {
	a = newWorld("a",
		worldNode{name: "a1", podCIDR: "10.244.1.0/24", address: "172.31.1.11"},
		worldNode{name: "a2", podCIDR: "10.244.2.0/24", address: "172.31.1.12"})
	b = newWorld("b",
		worldNode{name: "b1", podCIDR: "10.244.1.0/24", address: "172.31.2.11"},
		worldNode{name: "b2", podCIDR: "10.244.2.0/24", address: "172.31.2.12"})
	playPods(a, b)
	return a, b
}

// live plays the helpers until the test ends.
func live(t *testing.T, worlds ...*world) {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for _, w := range worlds {
		group.Go(func() {
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				if err := w.turn(ctx); err != nil && ctx.Err() == nil {
					t.Errorf("helpers of cluster %s: %v", w.Context, err)
					return
				}
			}
		})
	}
	t.Cleanup(func() { cancel(); group.Wait() })
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// pause ends what helpers and controllers do: helpers of one cluster read records of the other.
func pause(worlds ...*world) {
	for _, w := range worlds {
		w.set(func() { w.still = true })
	}
}

// turn lets every helper and controller act once.
func (w *world) turn(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.still || time.Since(w.acted) < w.pace {
		return nil
	}
	w.acted = time.Now()
	fabric, err := inventory.Fabric(ctx, w.Cluster)
	if err != nil {
		return err
	}
	peerings, err := inventory.Peerings(ctx, w.Cluster)
	if err != nil {
		return err
	}
	if err := w.controllers(ctx); err != nil {
		return err
	}
	if w.stuck != "" || !w.runs(ctx) {
		return nil
	}
	err = w.act(ctx, fabric, peerings)
	if !w.runs(ctx) { // its end would have waited for these writes
		leases, errList := inventory.Leases(ctx, w.Cluster)
		err = errors.Join(err, errList)
		for _, l := range leases {
			err = errors.Join(err, w.kube.CoordinationV1().Leases(w.Namespace).Delete(ctx, l.Name, metav1.DeleteOptions{}))
		}
	}
	return err
}

// runs reports whether there is a DaemonSet of node helpers, as far as the API server says.
func (w *world) runs(ctx context.Context) bool {
	_, err := w.kube.AppsV1().DaemonSets(w.Namespace).Get(ctx, records.NodeName, metav1.GetOptions{})
	return !apierrors.IsNotFound(err)
}

// controllers make pods and node ports.
func (w *world) controllers(ctx context.Context) error {
	sets, err := w.kube.AppsV1().DaemonSets(w.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if err := w.podsOf(ctx, sets.Items); err != nil {
		return err
	}
	for _, set := range sets.Items {
		served := int32(len(w.nodes))
		if set.Status.NumberReady != served {
			set.Status = appsv1.DaemonSetStatus{DesiredNumberScheduled: served, NumberReady: served, UpdatedNumberScheduled: served}
			if _, err := w.kube.AppsV1().DaemonSets(w.Namespace).UpdateStatus(ctx, &set, metav1.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return errors.Join(w.deployments(ctx), w.services(ctx))
}

// podsOf makes the pods of DaemonSets, one a node, and removes those of others.
func (w *world) podsOf(ctx context.Context, sets []appsv1.DaemonSet) error {
	client := w.kube.CoreV1().Pods(w.Namespace)
	there, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	wanted := make(map[string]*corev1.Pod)
	for i := range sets {
		for _, node := range w.nodes {
			pod := w.pod(&sets[i], node)
			wanted[pod.Name] = pod
		}
	}
	for _, pod := range there.Items {
		next := wanted[pod.Name]
		if next != nil && next.Annotations[records.AnnotationRun] == pod.Annotations[records.AnnotationRun] {
			delete(wanted, pod.Name)
		} else if pod.DeletionTimestamp == nil { // a lost node ends no pod
			err = errors.Join(err, client.Delete(ctx, pod.Name, metav1.DeleteOptions{}))
		}
	}
	for _, pod := range wanted {
		_, e := client.Create(ctx, pod, metav1.CreateOptions{})
		err = errors.Join(err, e)
	}
	return err
}

func (w *world) pod(set *appsv1.DaemonSet, node string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: set.Name + "-" + node, Labels: set.Spec.Template.Labels, Annotations: set.Spec.Template.Annotations},
		Spec:       corev1.PodSpec{NodeName: node, HostNetwork: true},
	}
	why := w.stuck
	if why == "" && w.mute[node] {
		why = w.fails
	}
	switch {
	case why != "":
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: why, Message: "no such image"},
		}}}
	case set.Name == records.VerifyName:
		if slices.Contains(set.Spec.Template.Spec.InitContainers[0].Args, "--remove") {
			delete(w.kernels, node)
		}
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Message: w.kernels[node]},
		}}}
	}
	return pod
}

func (w *world) deployments(ctx context.Context) error {
	list, err := w.kube.AppsV1().Deployments(w.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, d := range list.Items {
		if d.Status.AvailableReplicas == 1 {
			continue
		}
		d.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
		if _, err := w.kube.AppsV1().Deployments(w.Namespace).UpdateStatus(ctx, &d, metav1.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// services allocates node ports, as an API server does.
func (w *world) services(ctx context.Context) error {
	list, err := w.kube.CoreV1().Services(w.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, svc := range list.Items {
		for i, port := range svc.Spec.Ports {
			if svc.Spec.Type != corev1.ServiceTypeNodePort || port.NodePort != 0 {
				continue
			}
			patch := fmt.Sprintf(`[{"op": "test", "path": "/spec/ports/%[1]d/name", "value": %[2]q}, {"op": "add", "path": "/spec/ports/%[1]d/nodePort", "value": %[3]d}]`,
				i, port.Name, port.Port-21000)
			_, err := w.kube.CoreV1().Services(w.Namespace).Patch(ctx, svc.Name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}

// storedReports are the nodes' reports as the API server has them, for reactors: these cannot use the client.
func (w *world) storedReports(t *testing.T) []records.Node {
	list, err := w.kube.Tracker().List(coordinationv1.SchemeGroupVersion.WithResource("leases"),
		coordinationv1.SchemeGroupVersion.WithKind("Lease"), w.Namespace)
	if err != nil {
		t.Error(err)
		return nil
	}
	var leases []*coordinationv1.Lease
	for i := range list.(*coordinationv1.LeaseList).Items {
		leases = append(leases, &list.(*coordinationv1.LeaseList).Items[i])
	}
	reports, err := inventory.Reports(leases)
	if err != nil {
		t.Error(err)
	}
	return reports
}

// left lists what a cluster has of liqonet's, cluster-wide objects included.
func (w *world) left(t *testing.T) []string {
	t.Helper()
	w.mu.Lock() // the turn that has begun ends before
	defer w.mu.Unlock()
	objects, err := w.List(t.Context(), records.LabelComponent)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(objects))
	for _, o := range objects {
		names = append(names, fmt.Sprintf("%T %s", o, o.GetName()))
	}
	selector := metav1.ListOptions{LabelSelector: records.LabelComponent}
	namespaces, err := w.kube.CoreV1().Namespaces().List(t.Context(), selector)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range namespaces.Items {
		names = append(names, "Namespace "+o.Name)
	}
	roles, err := w.kube.RbacV1().ClusterRoles().List(t.Context(), selector)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range roles.Items {
		names = append(names, "ClusterRole "+o.Name)
	}
	return names
}

// recorder keeps what an operation says.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorder) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *recorder) Stage(string)                              {}
func (r *recorder) Done(name, detail string, _ time.Duration) { r.add("done %s: %s", name, detail) }
func (r *recorder) Note(text string)                          { r.add("note %s", text) }
func (r *recorder) Warn(text, hint string)                    { r.add("warn %s (%s)", text, hint) }

func (r *recorder) said() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.lines...)
}
