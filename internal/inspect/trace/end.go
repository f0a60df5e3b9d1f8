package trace

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam/translate"
)

// servicePrefix is the prefix of Services in the options.
const servicePrefix = "svc/"

// sender resolves the sender in the options.
func (s *side) sender(ctx context.Context, text string) (End, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return s.identify(ctx, s.end(a))
	}
	if strings.HasPrefix(text, servicePrefix) {
		return End{}, fmt.Errorf("trace from %s: FROM must be a pod, a node or an address", text)
	}
	return s.named(ctx, text)
}

// receiver resolves the receiver in the options, which is in the peer. Packets to a Service go to the port of its
// endpoint.
func (s *side) receiver(ctx context.Context, peer *side, text string, f *Flow) (End, error) {
	if name, ok := strings.CutPrefix(text, servicePrefix); ok {
		namespace, name, _ := strings.Cut(name, "/")
		service, err := s.cluster.Kube.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return End{}, fmt.Errorf("read Service %s/%s of cluster %q: %w", namespace, name, s.cluster.Context, err)
		}
		return s.behind(ctx, peer, service, f)
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return peer.named(ctx, text)
	}
	if _, err := s.translator.ImportedFrom(a); err == nil {
		return s.reached(ctx, peer, a)
	}
	e := End{Address: a, Unreachable: fmt.Sprintf("%s is no address by which %s is reached", a, peer.Fabric.Name)}
	if !a.Is4() {
		e.Unreachable = fmt.Sprintf("%s: liqonet carries IPv4 only", a)
	}
	if own, err := s.translator.Import(a); err == nil && own.Translated != a {
		e.Notes = append(e.Notes, fmt.Sprintf("if %s is an address in %s: it is reached by %s", a, peer.Fabric.Name, own.Translated))
	}
	services, err := s.cluster.Kube.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		e.Notes = append(e.Notes, fmt.Sprintf("whether it is the address of a Service is not known: %v", kube.Unread(err)))
		return e, nil
	}
	for _, service := range services.Items {
		if slices.Contains(service.Spec.ClusterIPs, a.String()) {
			return s.behind(ctx, peer, &service, f)
		}
	}
	return e, nil
}

// reached returns the end in the peer that has an address in this cluster.
func (s *side) reached(ctx context.Context, peer *side, a netip.Addr) (End, error) {
	own, err := peer.translator.ExportedFrom(a)
	if err != nil {
		return End{}, fmt.Errorf("trace to %s: %w", a, err)
	}
	return peer.identify(ctx, peer.end(own.Translated))
}

// internal returns the internal address of a node.
func (s *side) internal(n records.Node) netip.Addr {
	return records.NodeAddress(s.Fabric.InternalCIDR(), n.Number)
}

// end returns the end with an address of this cluster.
func (s *side) end(a netip.Addr) End {
	e := End{Cluster: s.Fabric.Name, Address: a}
	seen, err := s.translator.Export(a)
	if err != nil {
		e.Unreachable = err.Error()
		return e
	}
	e.Kind, e.Seen = seen.Kind, seen.Translated
	n := s.node(hasPod(a))
	if e.Kind == translate.Node {
		n = s.node(func(n records.Node) bool { return s.internal(n) == a })
	}
	switch {
	case n != nil && e.Kind == translate.Node:
		e.Name, e.Node = n.Name, n.Name
	case n != nil:
		e.Node = n.Name
	case e.Kind != translate.Exposed:
		e.Unreachable = fmt.Sprintf("no node of %s reports %s", s.Fabric.Name, a)
	}
	return e
}

// identify resolves the pod with the address of an end, if the user may list pods.
func (s *side) identify(ctx context.Context, e End) (End, error) {
	if e.Kind != translate.Pod {
		return e, nil
	}
	pods, err := s.cluster.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "status.podIP=" + e.Address.String()})
	if err != nil {
		e.Notes = append(e.Notes, fmt.Sprintf("its pod and NetworkPolicies are not known: %v", kube.Unread(err)))
		return e, ctx.Err()
	}
	for _, pod := range pods.Items {
		if pod.Status.PodIP == e.Address.String() && !pod.Spec.HostNetwork && !ended(&pod) {
			return s.withPod(ctx, e, &pod), nil
		}
	}
	e.Notes = append(e.Notes, fmt.Sprintf("no pod of %s has this address", s.Fabric.Name))
	return e, nil
}

// named resolves a pod, NAMESPACE/NAME, or a node.
func (s *side) named(ctx context.Context, text string) (End, error) {
	namespace, name, isPod := strings.Cut(text, "/")
	if !isPod {
		n := s.node(named(text))
		if n == nil {
			return End{}, fmt.Errorf("trace: no node %q of cluster %q reports; a pod is NAMESPACE/NAME", text, s.cluster.Context)
		}
		return s.end(s.internal(*n)), nil
	}
	// It lists pods, as level operate permits this, but not necessarily get.
	pods, err := s.cluster.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return End{}, fmt.Errorf("read pod %s of cluster %q: %w", text, s.cluster.Context, err)
	}
	i := slices.IndexFunc(pods.Items, func(p corev1.Pod) bool { return p.Name == name })
	if i < 0 {
		return End{}, fmt.Errorf("trace: cluster %q has no pod %s", s.cluster.Context, text)
	}
	pod := &pods.Items[i]
	if pod.Spec.HostNetwork {
		e := End{Cluster: s.Fabric.Name, Name: text, Node: pod.Spec.NodeName}
		if n := s.node(named(pod.Spec.NodeName)); n != nil {
			e = s.end(s.internal(*n))
		}
		e.Notes = append(e.Notes, fmt.Sprintf("pod %s uses the network of its node (hostNetwork)", text))
		return e, nil
	}
	a, err := inventory.PodAddress(pod)
	if err != nil {
		return End{}, err
	}
	return s.withPod(ctx, s.end(a), pod), nil
}

// withPod completes an end with the data of its pod.
func (s *side) withPod(ctx context.Context, e End, pod *corev1.Pod) End {
	e.Name, e.Node = pod.Namespace+"/"+pod.Name, cmp.Or(pod.Spec.NodeName, e.Node)
	if ended(pod) {
		// Another pod may have its address by now.
		e.Unreachable = fmt.Sprintf("pod %s has ended: %s", e.Name, pod.Status.Phase)
	}
	policies, err := s.cluster.Kube.NetworkingV1().NetworkPolicies(pod.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		e.Notes = append(e.Notes, fmt.Sprintf("its NetworkPolicies are not known: %v", kube.Unread(err)))
		return e
	}
	e.pod = podPolicies{pod, policies.Items}
	return e
}

// behind returns the first endpoint of a Service that is in the peer.
func (s *side) behind(ctx context.Context, peer *side, service *corev1.Service, f *Flow) (End, error) {
	name := fmt.Sprintf("%s/%s", service.Namespace, service.Name)
	e := End{Service: name}
	e.Address, _ = netip.ParseAddr(service.Spec.ClusterIP) // a headless Service has no address
	ports := slices.DeleteFunc(slices.Clone(service.Spec.Ports), func(p corev1.ServicePort) bool {
		return f.Port != 0 && p.Port != int32(f.Port) || Protocol(strings.ToLower(string(cmp.Or(p.Protocol, corev1.ProtocolTCP)))) != f.Protocol
	})
	if len(ports) == 0 {
		e.Unreachable = fmt.Sprintf("Service %s has no %s port %d", name, f.Protocol, f.Port)
		return e, nil
	}
	list, err := s.cluster.Kube.DiscoveryV1().EndpointSlices(service.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: discoveryv1.LabelServiceName + "=" + service.Name,
	})
	if err != nil {
		return e, fmt.Errorf("list the endpoints of Service %s of cluster %q: %w", name, s.cluster.Context, err)
	}
	all := endpoints(list.Items, ports[0].Name)
	total := len(all)
	found := slices.DeleteFunc(all, func(a netip.AddrPort) bool {
		_, err := s.translator.ImportedFrom(a.Addr())
		return err != nil
	})
	if len(found) == 0 {
		e.Unreachable = fmt.Sprintf("Service %s has no endpoint in %s that is ready, of %d", name, peer.Fabric.Name, total)
		return e, nil
	}
	f.Port = found[0].Port()
	e, err = s.reached(ctx, peer, found[0].Addr())
	e.Service = name
	e.Notes = append(e.Notes, fmt.Sprintf("Service %s, %s port %d, has %d endpoints, %d of them in %s: this is the first", name, service.Spec.ClusterIP, ports[0].Port, total, len(found), peer.Fabric.Name))
	return e, err
}

// endpoints returns the ready endpoints, each with its port of that name.
func endpoints(slices []discoveryv1.EndpointSlice, port string) (all []netip.AddrPort) {
	for _, slice := range slices {
		for _, p := range slice.Ports {
			if p.Name == nil || p.Port == nil || *p.Name != port {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				a, err := netip.ParseAddr(endpoint.Addresses[0]) // the API requires one
				if r := endpoint.Conditions.Ready; err == nil && (r == nil || *r) {
					all = append(all, netip.AddrPortFrom(a, uint16(*p.Port)))
				}
			}
		}
	}
	return all
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
