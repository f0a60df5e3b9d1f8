package diagnose_test

import (
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/diagnose"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/pathtest"
	"liqonet.io/liqonet/internal/pathtest/probe"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/connected"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/wireguard"
	"liqonet.io/liqonet/ipam"
)

// stopped returns two connected clusters with all pods ready, whose controllers and helpers have stopped.
func stopped(t *testing.T) (a, b *fakecluster.Cluster) {
	t.Helper()
	a, b = connected.New(t)
	for _, w := range []*fakecluster.Cluster{a, b} {
		w.Set(func() { w.Paused = true })
		all, err := kube.All[*corev1.Pod](t.Context(), w.Cluster, inventory.Selector(records.ComponentFabric))
		require.NoError(t, err)
		peer := map[string]string{"a": "b", "b": "a"}[w.Context]
		gateway := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: "gateway-0", Namespace: w.Namespace, Labels: map[string]string{records.LabelComponent: records.ComponentGateway, records.LabelPeering: peer},
		}}
		w.Add(t, gateway)
		for _, pod := range append(all, gateway) {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			replace(t, w, pod)
		}
	}
	return a, b
}

// copies returns two clusters with the same objects, without controllers and helpers.
func copies(t *testing.T, clusters ...*fakecluster.Cluster) (a, b *fakecluster.Cluster) {
	t.Helper()
	a, b = fakecluster.Pair()
	for i, w := range []*fakecluster.Cluster{a, b} {
		objects, err := inventory.Installed(t.Context(), clusters[i].Cluster)
		require.NoError(t, err)
		for _, o := range objects {
			w.Add(t, o.DeepCopyObject())
		}
		pods, err := kube.All[*corev1.Pod](t.Context(), clusters[i].Cluster, "")
		require.NoError(t, err)
		for _, pod := range pods {
			w.Add(t, pod.DeepCopy())
		}
	}
	return a, b
}

// later writes the report of a gateway as if it had been made later.
func later(t *testing.T, w *fakecluster.Cluster, peer string, by time.Duration) {
	t.Helper()
	w.ChangeStatus(t, peer, func(s *records.Status) {
		s.Time, s.LastEcho, s.Session.Since = s.Time.Add(by), s.LastEcho.Add(by), s.Session.Since.Add(by)
		for i := range s.Nodes {
			s.Nodes[i].LastEcho, s.Nodes[i].LastProof = s.Nodes[i].LastEcho.Add(by), s.Nodes[i].LastProof.Add(by)
		}
	})
}

// replace writes an object without a check of its content.
func replace(t *testing.T, w *fakecluster.Cluster, o kube.Object) {
	t.Helper()
	var err error
	switch o := o.(type) {
	case *corev1.Pod:
		_, err = w.Fake.CoreV1().Pods(w.Namespace).Update(t.Context(), o, metav1.UpdateOptions{})
	case *corev1.Node:
		_, err = w.Fake.CoreV1().Nodes().Update(t.Context(), o, metav1.UpdateOptions{})
	case *corev1.ConfigMap:
		_, err = w.Fake.CoreV1().ConfigMaps(w.Namespace).Update(t.Context(), o, metav1.UpdateOptions{})
	case *corev1.Secret:
		_, err = w.Fake.CoreV1().Secrets(w.Namespace).Update(t.Context(), o, metav1.UpdateOptions{})
	case *corev1.Service:
		_, err = w.Fake.CoreV1().Services(w.Namespace).Update(t.Context(), o, metav1.UpdateOptions{})
	case *appsv1.Deployment:
		_, err = w.Fake.AppsV1().Deployments(w.Namespace).Update(t.Context(), o, metav1.UpdateOptions{})
	default:
		t.Fatalf("%T", o)
	}
	require.NoError(t, err)
}

// edit changes an object of a cluster.
func edit[T kube.Object](t *testing.T, w *fakecluster.Cluster, name string, change func(T)) {
	t.Helper()
	o, err := kube.Find[T](t.Context(), w.Cluster, name)
	require.NoError(t, err)
	change(o)
	replace(t, w, o)
}

// cilium makes Cilium's configuration.
func cilium(t *testing.T, w *fakecluster.Cluster, config map[string]string) {
	t.Helper()
	w.Add(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "cilium-config"}, Data: config})
}

// deny takes rights from the user, who has no others than those of level view.
func deny(w *fakecluster.Cluster, denied ...kube.Permission) {
	w.Fake.PrependReactor("create", "selfsubjectaccessreviews", fakecluster.Review(func(p kube.Permission) bool {
		return p.Verb != "*" && !slices.Contains(denied, p)
	}))
}

const minuteAgo = -time.Minute

// diagnosedFaults break one thing each in cluster a, or b, and name the checks that fail or warn as causes.
var diagnosedFaults = map[string]struct {
	inject func(t *testing.T, a, b *fakecluster.Cluster)
	want   string // IDs of those that fail, with "?" of those that warn, and the cluster where it is not a
}{
	"a right is missing": {func(_ *testing.T, a, _ *fakecluster.Cluster) {
		deny(a, kube.Permission{Verb: "list", Group: "coordination.k8s.io", Resource: "leases", Namespace: a.Namespace})
	}, "LQ-RIGHTS-VIEW?"},
	"one list is not answered": {func(_ *testing.T, a, _ *fakecluster.Cluster) {
		a.Fake.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewInternalError(errors.New("etcd is slow"))
		})
	}, "LQ-API-ANSWERS"},
	"no installation": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		require.NoError(t, a.Fake.AppsV1().DaemonSets(a.Namespace).Delete(t.Context(), records.NodeName, metav1.DeleteOptions{}))
	}, "LQ-OBJECTS-INSTALLED"},
	"the API server does not answer": {func(_ *testing.T, a, _ *fakecluster.Cluster) {
		a.Fake.PrependReactor("get", "version", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("connection refused")
		})
	}, "LQ-API-REACHABLE"},
	"a clock is ahead": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeStatus(t, "b", func(s *records.Status) { s.Time = s.Time.Add(time.Hour) })
	}, "LQ-API-CLOCK"},
	"the record of the peering is edited": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		edit(t, a, "peering-b", func(o *corev1.ConfigMap) { o.Data = map[string]string{records.DataKey: "x"} })
	}, "LQ-OBJECTS-DAMAGED"},
	"the record of the installation is edited": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		edit(t, a, "fabric", func(o *corev1.ConfigMap) { o.Data = map[string]string{records.DataKey: "x"} })
	}, "LQ-OBJECTS-DAMAGED"},
	"the reservations are edited": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		edit(t, a, "ipam", func(o *corev1.ConfigMap) { o.Data = map[string]string{records.DataKey: "x"} })
	}, "LQ-OBJECTS-DAMAGED"},
	"a label of a record is edited": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		edit(t, a, "peering-b", func(o *corev1.ConfigMap) { delete(o.Labels, records.LabelComponent) })
	}, "LQ-OBJECTS-DAMAGED"},
	"the place of a gateway is edited": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		edit(t, a, "gateway-b", func(o *corev1.ConfigMap) { o.Data = map[string]string{records.DataKey: "x"} })
	}, "LQ-GATEWAY-RECORDS"},
	"the report of a gateway is edited": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		edit(t, a, "status-b", func(o *corev1.ConfigMap) { o.Data = map[string]string{records.DataKey: "x"} })
	}, "LQ-GATEWAY-RECORDS"},
	"a Secret is edited": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		edit(t, a, "peering-b", func(s *corev1.Secret) { s.Data = nil })
	}, "LQ-OBJECTS-KEYS"},
	"a Secret is deleted": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		require.NoError(t, a.Fake.CoreV1().Secrets(a.Namespace).Delete(t.Context(), "peering-b", metav1.DeleteOptions{}))
	}, "LQ-OBJECTS-INTACT"},
	"a range of the peering is not reserved": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeRegistry(t, func(r *ipam.Registry) error {
			return r.ReleaseRange(ipam.Peering("b"), ipam.PeerPods, a.Peering(t).Peer.PodCIDRs[0].Seen)
		})
	}, "LQ-OBJECTS-RESERVATIONS"},
	"a role is deleted": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		require.NoError(t, a.Fake.RbacV1().Roles(a.Namespace).Delete(t.Context(), "gateway-b", metav1.DeleteOptions{}))
	}, "LQ-OBJECTS-INTACT"},
	"a reservation of an earlier pod CIDR": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeRegistry(t, func(r *ipam.Registry) error {
			return r.Reserve(ipam.Reservation{Range: netip.MustParsePrefix("10.99.0.0/16"), Owner: ipam.Cluster, Purpose: ipam.PodCIDR})
		})
	}, "LQ-OBJECTS-RESERVATIONS"},
	"the API server moves to an address of the peer's": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.AddAPIServer(t, a.Peering(t).Peer.PodCIDRs[0].Seen.Addr().Next().String())
	}, "LQ-OBJECTS-RANGES"},
	"a node is not Ready": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		edit(t, a, "a2", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
	}, "LQ-NODES-READY?"},
	"no node is Ready": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		for _, name := range []string{"a1", "a2"} {
			edit(t, a, name, func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
		}
	}, "LQ-NODES-READY"},
	"an image cannot be pulled": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		pods, _ := kube.All[*corev1.Pod](t.Context(), a.Cluster, inventory.Selector(records.ComponentFabric))
		pods[0].Status = corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}},
		}}}
		replace(t, a, pods[0])
		a.ChangeStatus(t, "b", func(s *records.Status) { s.Nodes[0].LastEcho = s.Time.Add(minuteAgo) })
	}, "LQ-NODES-HELPER"},
	"a node's report is deleted": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		require.NoError(t, a.Fake.CoordinationV1().Leases(a.Namespace).Delete(t.Context(), "node-10.80.0.1", metav1.DeleteOptions{}))
	}, "LQ-NODES-REPORT"},
	"a kernel without Geneve": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeNodeReport(t, func(n *records.Node) { n.Kernel.Geneve = false })
	}, "LQ-NODES-KERNEL"},
	"a firewall that drops": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeNodeReport(t, func(n *records.Node) { n.ForwardDrops = []records.ForwardDrop{{Chain: "ip filter FORWARD"}} })
		a.ChangeStatus(t, "b", func(s *records.Status) { s.Nodes[0].LastProof = s.Time.Add(minuteAgo) })
	}, "LQ-NODES-FORWARD"},
	"a firewall with rules for liqonet": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeNodeReport(t, func(n *records.Node) { n.ForwardDrops = []records.ForwardDrop{{Chain: "ip filter FORWARD"}} })
	}, "LQ-NODES-FORWARD?"},
	"Cilium with eBPF host routing": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		cilium(t, a, map[string]string{"enable-bpf-masquerade": "true", "kube-proxy-replacement": "true"})
	}, "LQ-NODES-PLUGIN?"},
	"Cilium with netkit devices": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		cilium(t, a, map[string]string{"datapath-mode": "netkit"})
	}, "LQ-NODES-PLUGIN"},
	"a node refuses the record": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeNodeReport(t, func(n *records.Node) { n.Refused = map[string]string{"b": "10.0.0.1 is the API server's"} })
		a.ChangeStatus(t, "b", func(s *records.Status) { s.Nodes[0].Refused = "10.0.0.1 is the API server's" })
	}, "LQ-NODES-REFUSED"},
	"a routing rule of a VPN": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		const why = "packets to 10.71.0.1 meet a rule or route of another program: rule 50 to 10.71.0.0/16 table 999, route 0.0.0.0/0 blackhole table 999"
		a.ChangeNodeReport(t, func(n *records.Node) { n.Refused = map[string]string{"b": why} })
		a.ChangeStatus(t, "b", func(s *records.Status) { s.Nodes[0].Refused = why })
	}, "LQ-NODES-REFUSED"},
	"links are removed again and again": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeStatus(t, "b", func(s *records.Status) {
			s.Nodes[0].Drift = records.Drift{Times: 7, Last: s.Time, What: "link lqn-gw1"}
		})
	}, "LQ-NODES-DRIFT?"},
	"a quota refuses the gateway": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		require.NoError(t, a.Fake.CoreV1().Pods(a.Namespace).Delete(t.Context(), "gateway-0", metav1.DeleteOptions{}))
		a.Add(t, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "refused"}, Reason: "FailedCreate", Message: "exceeded quota: none",
			InvolvedObject: corev1.ObjectReference{Kind: "ReplicaSet", Name: "gateway-b-1"},
		})
		a.ChangeStatus(t, "b", func(s *records.Status) { s.Time = s.Time.Add(-time.Hour) })
	}, "LQ-GATEWAY-RUNNING"},
	"a Secret without labels, which the gateway mounts all the same": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		edit(t, a, "peering-b", func(s *corev1.Secret) { s.Labels = nil })
	}, ""},
	"a gateway is scaled to 0": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		edit(t, a, "gateway-b", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32) })
		require.NoError(t, a.Fake.CoreV1().Pods(a.Namespace).Delete(t.Context(), "gateway-0", metav1.DeleteOptions{}))
	}, "LQ-OBJECTS-INTACT"},
	"a load balancer stays pending": {func(t *testing.T, _, b *fakecluster.Cluster) {
		b.ChangePeering(t, "a", func(p *records.Peering) { p.Settings.ServiceType = nil })
		edit(t, b, "gateway-a", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer })
	}, "LQ-GATEWAY-SERVICE/b"},
	"a gateway hangs": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeStatus(t, "b", func(s *records.Status) { s.Time = s.Time.Add(-time.Hour) })
	}, "LQ-GATEWAY-REPORT"},
	"the kernel refuses a route": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeStatus(t, "b", func(s *records.Status) { s.Failed = []string{"route 10.71.0.0/16: file exists"} })
	}, "LQ-GATEWAY-APPLIED"},
	"an upgrade was interrupted": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		edit(t, a, "gateway-b", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "liqonet:0" })
	}, "LQ-GATEWAY-VERSION?"},
	"a NetworkPolicy": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.Add(t, &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "deny"}})
	}, "LQ-GATEWAY-POLICY?"},
	"UDP 6091 is blocked": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeStatus(t, "b", func(s *records.Status) {
			s.Nodes[0].LastEcho, s.Nodes[0].LastProof = s.Time.Add(minuteAgo), s.Time.Add(minuteAgo)
		})
	}, "LQ-OVERLAY-ECHO"},
	"UDP 6092 is blocked": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeStatus(t, "b", func(s *records.Status) { s.Nodes[0].Path.MTU = 0 })
	}, "LQ-OVERLAY-PROBE?"},
	"a narrow link between nodes": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeStatus(t, "b", func(s *records.Status) { s.Nodes[0].Path.MTU = 1400 })
	}, "LQ-OVERLAY-MTU"},
	"a Secret from a backup": {func(t *testing.T, a, b *fakecluster.Cluster) {
		b.ChangePeering(t, "a", func(p *records.Peering) {
			p.Gateways[0].Tunnels[0].Driver = records.Driver{WireGuard: wireguard.Peer{PublicKey: strings.Repeat("A", 43) + "="}}
		})
		a.ChangeStatus(t, "b", func(s *records.Status) { s.Session, s.LastEcho = records.Session{}, time.Time{} })
	}, "LQ-TUNNEL-KEYS"},
	"another NodePort": {func(t *testing.T, a, b *fakecluster.Cluster) {
		edit(t, b, "gateway-a", func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 31999 })
		a.ChangeStatus(t, "b", func(s *records.Status) { s.Session, s.LastEcho = records.Session{}, s.Time.Add(minuteAgo) })
	}, "LQ-TUNNEL-ENDPOINT"},
	"another NodePort, and nodes that track the connection": {func(t *testing.T, _, b *fakecluster.Cluster) {
		edit(t, b, "gateway-a", func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 31999 })
	}, "LQ-TUNNEL-ENDPOINT?"},
	"a firewall between the clusters": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeStatus(t, "b", func(s *records.Status) { s.Session, s.LastEcho = records.Session{}, s.Time.Add(minuteAgo) })
	}, "LQ-TUNNEL-HANDSHAKE"},
	"only handshakes pass": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeStatus(t, "b", func(s *records.Status) { s.LastEcho = s.Time.Add(minuteAgo) })
	}, "LQ-TUNNEL-ECHO"},
	"packets are lost": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeStatus(t, "b", func(s *records.Status) { s.Loss = 0.2 })
	}, "LQ-TUNNEL-LOSS"},
	"a narrow path between the clusters": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeStatus(t, "b", func(s *records.Status) { s.Path.MTU = 1300 })
	}, "LQ-TUNNEL-MTU"},
	"the other cluster has lost the peering": {func(t *testing.T, _, b *fakecluster.Cluster) {
		for _, name := range []string{"peering-a", "gateway-a", "status-a"} {
			require.NoError(t, b.Fake.CoreV1().ConfigMaps(b.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
		}
		b.ChangeRegistry(t, func(r *ipam.Registry) error {
			for _, h := range r.Held(ipam.Peering("a")) {
				if err := r.ReleaseRange(h.Owner, h.Purpose, h.Range); err != nil {
					return err
				}
			}
			return nil
		})
	}, "LQ-PEER-EXISTS"},
	"the clusters disagree": {func(t *testing.T, _, b *fakecluster.Cluster) {
		b.ChangePeering(t, "a", func(p *records.Peering) { p.MTU = 1300 })
	}, "LQ-PEER-AGREES"},
	"large packets are lost": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeStatus(t, "b", func(s *records.Status) { s.Nodes[1].LastProof = s.Time.Add(minuteAgo) })
	}, "LQ-PATH-VERIFIED"},
	"a second installation": {func(t *testing.T, a, _ *fakecluster.Cluster) { connected.Second(t, a, time.Now().Add(time.Hour)) }, "LQ-LEFTOVERS-INSTALLATION"},
	"half a peering": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.Add(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "gateway-gone", Labels: map[string]string{
			records.LabelComponent: records.ComponentGateway, records.LabelPeering: "gone",
		}}})
	}, "LQ-LEFTOVERS-PEERING"},
	"a killed test": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.Add(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "test-pod-x", Labels: map[string]string{
			records.LabelComponent: records.ComponentTestPod,
		}}})
	}, "LQ-LEFTOVERS-TEST?"},
}

// causes are what failed without another failure that explains it, and what warns.
func causes(r diagnose.Result) []string {
	found := make(map[string]bool)
	for _, f := range r.Checks {
		id := f.ID
		if f.State == diagnose.Warning {
			id += "?"
		}
		if f.Cluster != "a" {
			id += "/" + f.Cluster
		}
		found[id] = found[id] || f.State == diagnose.Failed || f.State == diagnose.Warning
	}
	maps.DeleteFunc(found, func(_ string, cause bool) bool { return !cause })
	return slices.Sorted(maps.Keys(found))
}

// probedFaults are results of packets between the clusters of --probe, with what fails by them.
var probedFaults = map[string]struct {
	lost []pathtest.Check
	want string
}{
	"packets of pods are lost":       {lost("a", probe.UDP), "LQ-PATH-PACKETS"},
	"packets of the peer's are lost": {lost("b", probe.TCP), "LQ-PATH-PACKETS/b"},
	"pods are masqueraded":           {lost("a", "source"), "LQ-PATH-SOURCE"},
	"none are lost":                  {nil, ""},
}

// lost returns a check of packets of a cluster that failed.
func lost(cluster string, name probe.Check) []pathtest.Check {
	return []pathtest.Check{{From: pathtest.End{Cluster: cluster, Kind: pathtest.Pod, Node: "n"}, Name: name, State: pathtest.Failed}}
}

// TestDiagnose: of two healthy clusters no check fails or warns; each fault fails its own check, and all others that
// fail follow from it. Of every check there is a fault that fails it, and of every finding that changes the state of a
// peering one that raises it.
func TestDiagnose(t *testing.T) {
	t.Parallel()
	diagnosed := func(t *testing.T, a, b *fakecluster.Cluster) diagnose.Result {
		t.Helper()
		r, err := diagnose.Run(t.Context(), diagnose.Options{Cluster: a.Cluster, Remote: b.Cluster}, progress.Quiet{})
		require.NoError(t, err)
		return r
	}
	bubble.Run(t, "healthy", func(t *testing.T) {
		a, b := stopped(t)
		if got := diagnosed(t, a, b); len(causes(got)) > 0 || !got.Passed || got.Count(diagnose.Skipped) > 6 {
			t.Errorf("%+v", got)
		}
	})
	expect := func(t *testing.T, fault string, r diagnose.Result, want string) {
		t.Helper()
		t.Logf("%s:", fault)
		for _, f := range r.Checks {
			if f.State != diagnose.Passed {
				t.Logf("%s %s %s: %s; fix: %s; follows %s", f.State, f.ID, f.Subject(), f.Observed, f.Fix, f.Follows)
			}
		}
		if causes := causes(r); strings.Join(causes, " ") != want {
			t.Errorf("%s: causes %q, want %q", fault, causes, want)
		}
	}
	failed, raised := make(map[string]bool), make(map[health.Code]bool)
	add := func(want string) {
		id, _, _ := strings.Cut(strings.TrimSuffix(want, "?"), "/")
		failed[id] = true
	}
	bubble.Run(t, "probed", func(t *testing.T) {
		a, b := stopped(t)
		here, there := diagnose.Read(t.Context(), a.Cluster), diagnose.Read(t.Context(), b.Cluster)
		for name, fault := range probedFaults {
			r, err := diagnose.OfProbed(fault.lost, here, there)
			require.NoError(t, err)
			expect(t, name, r, fault.want)
			add(fault.want)
		}
	})
	bubble.Run(t, "faults", func(t *testing.T) {
		healthyA, healthyB := stopped(t)
		began := time.Now()
		for name, fault := range diagnosedFaults {
			a, b := copies(t, healthyA, healthyB)
			later(t, a, "b", time.Since(began)) // some faults are waited for
			later(t, b, "a", time.Since(began))
			fault.inject(t, a, b)
			there := diagnose.Read(t.Context(), b.Cluster)
			here := diagnose.Read(t.Context(), a.Cluster) // which may wait until the report of b is old
			r, err := diagnose.Of("", here, there)
			require.NoError(t, err)
			expect(t, name, r, fault.want)
			add(fault.want)
			all, _ := status.Of("", here)
			for _, p := range all {
				for _, finding := range p.Findings {
					raised[finding.Code] = true
				}
			}
		}
	})
	for _, c := range diagnose.Table() {
		if !failed[c.ID] {
			t.Errorf("no fault fails %s", c.ID)
		}
	}
	for _, code := range health.Codes() {
		if !raised[code] {
			t.Errorf("no fault raises %s", code)
		}
	}
}

// TestEachKindIsListedOnce: the number of requests does not grow with that of gateways and peerings.
func TestEachKindIsListedOnce(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "once", func(t *testing.T) {
		a, _ := stopped(t)
		a.Fake.ClearActions()
		_, err := diagnose.Run(t.Context(), diagnose.Options{Cluster: a.Cluster}, progress.Quiet{})
		require.NoError(t, err)
		lists := map[string]int{}
		for _, action := range a.Fake.Actions() {
			if action.GetNamespace() == a.Namespace {
				lists[action.GetVerb()+" "+action.GetResource().Resource]++
			}
		}
		for _, kind := range []string{"configmaps", "leases", "pods", "events", "secrets", "deployments", "services", "networkpolicies"} {
			if n := lists["list "+kind]; n != 1 {
				t.Errorf("%s are listed %d times", kind, n)
			}
		}
		if lists["get secrets"]+lists["get configmaps"] > 0 {
			t.Errorf("some are asked for by name: %v", lists)
		}
	})
}

// refusing is a transport to an API server that is not there.
type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

// TestDiagnoseUnreached: an API server that does not answer is the only failure of its cluster, and the other one is
// checked.
func TestDiagnoseUnreached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := stopped(t)
		gone, err := kube.Open(&rest.Config{Host: "https://192.0.2.1", Transport: refusing{}}, kube.Options{Context: "b"})
		require.NoError(t, err)
		r, err := diagnose.Run(t.Context(), diagnose.Options{Cluster: a.Cluster, Remote: gone}, progress.Quiet{})
		if err != nil || r.Passed || r.Count(diagnose.Passed) < 20 {
			t.Errorf("%v, %+v", err, r)
		}
		for _, f := range r.Checks {
			want := f.State == diagnose.Passed || f.State == diagnose.Skipped || f.State == diagnose.Following && f.Follows == "LQ-API-REACHABLE"
			if !want && f.ID != "LQ-API-REACHABLE" {
				t.Errorf("%+v", f)
			}
		}
	})
}
