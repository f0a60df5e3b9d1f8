package pathtest

import (
	"context"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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

// lists has the methods of a kind's client that are spoiled. They are less deep in a client than those of the API.
type lists[L runtime.Object] struct {
	spoiled
	of    string // kind
	list  func(context.Context, metav1.ListOptions) (L, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// List waits until ctx ends if the kind's list does not arrive; one of ConfigMaps only if it includes records of
// gateways.
func (l lists[L]) List(ctx context.Context, o metav1.ListOptions) (all L, err error) {
	others := l.of == ofGateways && (o.FieldSelector != "" || strings.Contains(o.LabelSelector, records.ComponentGateway))
	if l.never && l.of == l.kind && !others {
		<-ctx.Done()
		return all, ctx.Err()
	}
	if all, err = l.list(ctx, o); err != nil {
		return all, err
	}
	return all, meta.EachListItem(all, func(item runtime.Object) error { l.spoil(item); return nil })
}

// Watch spoils the objects of each event.
func (l lists[L]) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := l.watch(ctx, o)
	if err != nil {
		return nil, err
	}
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) { l.spoil(e.Object); return e, true }), nil
}

type (
	core struct {
		typedcore.CoreV1Interface
		spoiled
	}
	coordination struct {
		typedcoordination.CoordinationV1Interface
		spoiled
	}
	discovery struct {
		typeddiscovery.DiscoveryV1Interface
		spoiled
	}
	configMaps struct{ typedcore.ConfigMapInterface }
	pods       struct{ typedcore.PodInterface }
	nodes      struct{ typedcore.NodeInterface }
	leases     struct {
		typedcoordination.LeaseInterface
	}
	slicesOf struct {
		typeddiscovery.EndpointSliceInterface
	}
)

func (s spoiled) CoreV1() typedcore.CoreV1Interface { return core{s.Interface.CoreV1(), s} }
func (s spoiled) CoordinationV1() typedcoordination.CoordinationV1Interface {
	return coordination{s.Interface.CoordinationV1(), s}
}
func (s spoiled) DiscoveryV1() typeddiscovery.DiscoveryV1Interface {
	return discovery{s.Interface.DiscoveryV1(), s}
}
func (c core) ConfigMaps(ns string) typedcore.ConfigMapInterface {
	api := c.CoreV1Interface.ConfigMaps(ns)
	return struct {
		lists[*corev1.ConfigMapList]
		configMaps
	}{lists[*corev1.ConfigMapList]{c.spoiled, ofGateways, api.List, api.Watch}, configMaps{api}}
}
func (c core) Pods(ns string) typedcore.PodInterface {
	api := c.CoreV1Interface.Pods(ns)
	return struct {
		lists[*corev1.PodList]
		pods
	}{lists[*corev1.PodList]{c.spoiled, ofPods, api.List, api.Watch}, pods{api}}
}
func (c core) Nodes() typedcore.NodeInterface {
	api := c.CoreV1Interface.Nodes()
	return struct {
		lists[*corev1.NodeList]
		nodes
	}{lists[*corev1.NodeList]{c.spoiled, ofNodes, api.List, api.Watch}, nodes{api}}
}
func (c coordination) Leases(ns string) typedcoordination.LeaseInterface {
	api := c.CoordinationV1Interface.Leases(ns)
	return struct {
		lists[*coordinationv1.LeaseList]
		leases
	}{lists[*coordinationv1.LeaseList]{c.spoiled, ofLeases, api.List, api.Watch}, leases{api}}
}
func (d discovery) EndpointSlices(ns string) typeddiscovery.EndpointSliceInterface {
	api := d.DiscoveryV1Interface.EndpointSlices(ns)
	return struct {
		lists[*discoveryv1.EndpointSliceList]
		slicesOf
	}{lists[*discoveryv1.EndpointSliceList]{d.spoiled, ofAPIServers, api.List, api.Watch}, slicesOf{api}}
}
