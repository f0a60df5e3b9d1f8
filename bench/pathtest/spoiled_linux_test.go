package pathtest

import (
	"context"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcoordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	typeddiscovery "k8s.io/client-go/kubernetes/typed/discovery/v1"

	"liqonet.io/liqonet/internal/records"
)

// Kinds of objects that node helpers read and that other clients than liqoctl write.
const (
	ofGateways   = "records of gateways"
	ofLeases     = "Leases"
	ofPods       = "Pods"
	ofNodes      = "Nodes"
	ofAPIServers = "EndpointSlices"
)

// kindsOfOthers are the kinds that the first pass does not read at all. It does read the EndpointSlice of API servers,
// which only they write.
var kindsOfOthers = []string{ofGateways, ofLeases, ofPods, ofNodes}

// spoiled is a client of an API server with objects of a kind that crash each process that decodes them, or with a list
// of that kind that does not arrive.
type spoiled struct {
	kubernetes.Interface
	kind  string
	never bool // their list does not arrive
}

// unreadable returns a string with a valid length whose bytes crash the process that reads them, even if it recovers
// from panics.
func unreadable(length int) string {
	const most = 1 << 20
	b, err := unix.Mmap(-1, 0, most, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	return unsafe.String(unsafe.SliceData(b), min(length, most))
}

// spoil makes a string in an object of the kind unreadable and keeps its length: if it is too long for a record, it
// stays too long.
func (s spoiled) spoil(obj runtime.Object) {
	if s.never {
		return
	}
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		id, _ := records.IdentityOf(o.Name)
		for key, text := range o.Data {
			if s.kind == ofGateways && (id.Component == records.ComponentGateway || id.Component == records.ComponentStatus) {
				o.Data[key] = unreadable(len(text))
			}
		}
	case *coordinationv1.Lease:
		if s.kind == ofLeases && o.Spec.HolderIdentity != nil {
			*o.Spec.HolderIdentity = unreadable(len(*o.Spec.HolderIdentity))
		}
	case *corev1.Pod:
		for i := range o.Status.PodIPs {
			if s.kind == ofPods {
				o.Status.PodIPs[i].IP = unreadable(len(o.Status.PodIPs[i].IP))
			}
		}
	case *corev1.Node:
		for i := range o.Status.Addresses {
			if s.kind == ofNodes {
				o.Status.Addresses[i].Address = unreadable(len(o.Status.Addresses[i].Address))
			}
		}
	}
}

// hold waits until ctx ends if the kind's list does not arrive.
func (s spoiled) hold(ctx context.Context, kind string) error {
	if !s.never || kind != s.kind {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (s spoiled) watch(w watch.Interface, err error) (watch.Interface, error) {
	if err != nil {
		return nil, err
	}
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) { s.spoil(e.Object); return e, true }), nil
}

// listed returns the list of a kind.
func listed[T any, L any](ctx context.Context, s spoiled, kind string, list func() (L, error), items func(L) []T) (L, error) {
	if err := s.hold(ctx, kind); err != nil {
		var none L
		return none, err
	}
	l, err := list()
	if err != nil {
		return l, err
	}
	all := items(l)
	for i := range all {
		s.spoil(any(&all[i]).(runtime.Object))
	}
	return l, nil
}

type spoiledCore struct {
	typedcore.CoreV1Interface
	s spoiled
}

type spoiledMaps struct {
	typedcore.ConfigMapInterface
	s spoiled
}

type spoiledPods struct {
	typedcore.PodInterface
	s spoiled
}

type spoiledNodes struct {
	typedcore.NodeInterface
	s spoiled
}

type spoiledCoordination struct {
	typedcoordination.CoordinationV1Interface
	s spoiled
}

type spoiledLeases struct {
	typedcoordination.LeaseInterface
	s spoiled
}

type spoiledDiscovery struct {
	typeddiscovery.DiscoveryV1Interface
	s spoiled
}

type spoiledSlices struct {
	typeddiscovery.EndpointSliceInterface
	s spoiled
}

func (s spoiled) CoreV1() typedcore.CoreV1Interface { return spoiledCore{s.Interface.CoreV1(), s} }
func (s spoiled) CoordinationV1() typedcoordination.CoordinationV1Interface {
	return spoiledCoordination{s.Interface.CoordinationV1(), s}
}
func (s spoiled) DiscoveryV1() typeddiscovery.DiscoveryV1Interface {
	return spoiledDiscovery{s.Interface.DiscoveryV1(), s}
}
func (c spoiledCore) ConfigMaps(ns string) typedcore.ConfigMapInterface {
	return spoiledMaps{c.CoreV1Interface.ConfigMaps(ns), c.s}
}
func (c spoiledCore) Pods(ns string) typedcore.PodInterface {
	return spoiledPods{c.CoreV1Interface.Pods(ns), c.s}
}
func (c spoiledCore) Nodes() typedcore.NodeInterface {
	return spoiledNodes{c.CoreV1Interface.Nodes(), c.s}
}
func (c spoiledCoordination) Leases(ns string) typedcoordination.LeaseInterface {
	return spoiledLeases{c.CoordinationV1Interface.Leases(ns), c.s}
}
func (c spoiledDiscovery) EndpointSlices(ns string) typeddiscovery.EndpointSliceInterface {
	return spoiledSlices{c.DiscoveryV1Interface.EndpointSlices(ns), c.s}
}

// A list of ConfigMaps does not arrive if it includes records of gateways.
func (m spoiledMaps) List(ctx context.Context, o metav1.ListOptions) (*corev1.ConfigMapList, error) {
	kind := ofGateways
	if o.FieldSelector != "" || strings.Contains(o.LabelSelector, records.ComponentGateway) {
		kind = ""
	}
	return listed(ctx, m.s, kind, func() (*corev1.ConfigMapList, error) { return m.ConfigMapInterface.List(ctx, o) }, func(l *corev1.ConfigMapList) []corev1.ConfigMap { return l.Items })
}

func (m spoiledMaps) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return m.s.watch(m.ConfigMapInterface.Watch(ctx, o))
}

func (p spoiledPods) List(ctx context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
	return listed(ctx, p.s, ofPods, func() (*corev1.PodList, error) { return p.PodInterface.List(ctx, o) }, func(l *corev1.PodList) []corev1.Pod { return l.Items })
}

func (p spoiledPods) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return p.s.watch(p.PodInterface.Watch(ctx, o))
}

func (n spoiledNodes) List(ctx context.Context, o metav1.ListOptions) (*corev1.NodeList, error) {
	return listed(ctx, n.s, ofNodes, func() (*corev1.NodeList, error) { return n.NodeInterface.List(ctx, o) }, func(l *corev1.NodeList) []corev1.Node { return l.Items })
}

func (n spoiledNodes) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return n.s.watch(n.NodeInterface.Watch(ctx, o))
}

func (l spoiledLeases) List(ctx context.Context, o metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	return listed(ctx, l.s, ofLeases, func() (*coordinationv1.LeaseList, error) { return l.LeaseInterface.List(ctx, o) }, func(l *coordinationv1.LeaseList) []coordinationv1.Lease { return l.Items })
}

func (l spoiledLeases) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return l.s.watch(l.LeaseInterface.Watch(ctx, o))
}

func (e spoiledSlices) List(ctx context.Context, o metav1.ListOptions) (*discoveryv1.EndpointSliceList, error) {
	return listed(ctx, e.s, ofAPIServers, func() (*discoveryv1.EndpointSliceList, error) { return e.EndpointSliceInterface.List(ctx, o) }, func(l *discoveryv1.EndpointSliceList) []discoveryv1.EndpointSlice { return l.Items })
}
