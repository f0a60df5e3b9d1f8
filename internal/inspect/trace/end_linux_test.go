package trace

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
)

func shopPod(name, node, address string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "sql", ContainerPort: 5432}}}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}},
	}
}

// TestEnds traces to pods, nodes, addresses and Services as users specify them.
func TestEnds(t *testing.T) {
	a, b := pair(t, true)
	host := shopPod("host", "b-1", "172.31.2.11")
	host.Spec.HostNetwork = true
	job, done := shopPod("job", "a-1", "10.244.1.9"), shopPod("done", "b-2", "10.244.2.9")
	job.Status.Phase, done.Status.Phase = corev1.PodFailed, corev1.PodSucceeded
	service := func(name, ip string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec:       corev1.ServiceSpec{ClusterIP: ip, ClusterIPs: []string{ip}, Ports: []corev1.ServicePort{{Name: "sql", Port: 80, Protocol: corev1.ProtocolTCP}}},
		}
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-1", Labels: map[string]string{discoveryv1.LabelServiceName: "db"}},
		Ports:      []discoveryv1.EndpointPort{{Name: new("sql"), Port: new(int32(5432))}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.1.8"}}, {Addresses: []string{"10.71.2.6"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false)}},
			{Addresses: []string{"10.71.2.5"}}},
	}
	policy := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sql-only"},
		Spec: networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{
			From:  []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "10.72.0.0/16", Except: []string{"10.72.2.0/24"}}}},
			Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromString("sql"))}},
		}}},
	}
	for s, objects := range map[*side][]runtime.Object{
		a: {shopPod("web", "a-1", "10.244.1.7"), shopPod("other", "a-2", "10.244.2.7"), job, service("db", "10.96.0.5"), service("none", "10.96.0.6"), slice},
		b: {shopPod("db", "b-2", "10.244.2.5"), host, done, policy},
	} {
		s.cluster, _ = fakecluster.NewAPIServer(fakecluster.Config{Context: s.Fabric.Name, Objects: objects})
	}
	for _, test := range []struct {
		from, to string
		port     uint16
		dropped  string // part of the reason; "": it crosses
		err      string
	}{
		{from: "shop/web", to: "shop/db", port: 5432},
		{from: "10.244.1.7", to: "10.71.2.5", port: 5432},
		{from: "shop/web", to: "svc/shop/db", port: 80},
		{from: "shop/web", to: "10.96.0.5"},
		{from: "shop/web", to: "shop/db", port: 80, dropped: "sql-only of namespace shop selects pod db"},
		{from: "shop/other", to: "shop/db", port: 5432, dropped: "none allows ingress 10.72.2.7"},
		{from: "shop/web", to: "svc/shop/db", port: 81, dropped: "no tcp port 81"},
		{from: "shop/web", to: "svc/shop/none", port: 80, dropped: "no endpoint in b that is ready"},
		{from: "shop/web", to: "10.99.0.1", dropped: "is no address by which b is reached"},
		{from: "shop/web", to: "fd00::1", dropped: "IPv4 only"},
		{from: "192.0.2.1", to: "shop/db", dropped: "not an address of this cluster that peer"},
		{from: "shop/web", to: "10.71.9.5", dropped: "no node of b reports"},
		{from: "shop/web", to: "shop/host", port: 22, dropped: "of nodes, peers reach ping"},
		{from: "a-1", to: "b-1", port: 22, dropped: "of nodes, peers reach ping"},
		{from: "a-9", to: "shop/db", err: "no node"},
		{from: "shop/job", to: "shop/db", port: 5432, dropped: "pod shop/job has ended: Failed"},
		{from: "shop/web", to: "shop/done", port: 5432, dropped: "pod shop/done has ended: Succeeded"},
		{from: "svc/shop/db", to: "shop/db", err: "FROM must be"},
		{from: "shop/web", to: "shop/nobody", err: "no pod shop/nobody"},
	} {
		r := Result{Flow: Flow{TCP, test.port}}
		var err error
		if r.From, err = a.sender(t.Context(), test.from); err == nil {
			r.To, err = a.receiver(t.Context(), b, test.to, &r.Flow)
		}
		if err == nil {
			r, err = compute(a, b, r)
		}
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s to %s: error %v, want %q", test.from, test.to, err, test.err)
			continue
		}
		if why := r.There.Dropped(); err == nil && (r.Crosses != (test.dropped == "") || !strings.Contains(why, test.dropped)) {
			t.Errorf("%s to %s, %s: dropped %q, want %q", test.from, test.to, r.Flow, why, test.dropped)
		}
	}
}

// TestNoPacketOfAnEndedPod checks that no packet is sent with the address of an ended pod, which another pod may have.
func TestNoPacketOfAnEndedPod(t *testing.T) {
	r := Result{From: End{Node: "a-1", Unreachable: "pod shop/job has ended: Failed"}, To: End{Seen: addr("10.71.2.5")}, Flow: Flow{TCP, 80}}
	_, err := (Options{}).live(t.Context(), nil, nil, r)
	assert.ErrorContains(t, "error", err, "has ended")
}
