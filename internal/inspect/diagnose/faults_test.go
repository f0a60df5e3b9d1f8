package diagnose_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
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
			Name: "gateway-0", Namespace: w.Namespace, Labels: records.GatewayID{Peering: peer, Number: 1}.Identity(records.ComponentGateway).Labels(),
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
		require.NoError(t, a.Fake.CoordinationV1().Leases(a.Namespace).Delete(t.Context(), "node-1", metav1.DeleteOptions{}))
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
	"a node that does not forward": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeNodeReport(t, func(n *records.Node) { n.NotForwarding = true })
		a.ChangeStatus(t, "b", func(s *records.Status) { s.Time = s.Time.Add(-time.Hour) })
	}, "LQ-NODES-FORWARD"},
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
	"UDP 6091 is blocked on the way to a node": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeStatus(t, "b", func(s *records.Status) {
			s.Nodes[0].Deaf, s.Nodes[0].LastProof = true, s.Time.Add(minuteAgo)
		})
	}, "LQ-OVERLAY-ECHO"},
	"a node missed answers": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeStatus(t, "b", func(s *records.Status) { s.Nodes[0].Deaf = true })
	}, ""},
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
	"the tunnels have no encryption": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeStatus(t, "b", func(s *records.Status) { s.Implementation = records.Unencrypted })
	}, "LQ-TUNNEL-ENCRYPTED?"},
	"UDP is blocked between the clusters, and WebSocket is not": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeStatus(t, "b", func(s *records.Status) { s.Transport = records.WebSocket })
	}, "LQ-TUNNEL-UDP?"},
	"the kernel of a gateway's node has no BBR": {func(t *testing.T, a, _ *fakecluster.Cluster) {
		a.ChangeStatus(t, "b", func(s *records.Status) { s.Congestion = "cubic" })
	}, "LQ-TUNNEL-CONGESTION?"},
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
