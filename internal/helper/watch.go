//go:build linux

package helper

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"liqonet.io/liqonet/internal/helper/wakeup"
	"liqonet.io/liqonet/internal/records"
)

// mirror stores the objects that a helper watches and wakes it when one changes.
type mirror struct {
	client    any // of all of them, to determine its features
	changed   chan struct{}
	informers []cache.SharedIndexInformer
	synced    []cache.InformerSynced
}

func newMirror(client any) *mirror { return &mirror{client: client, changed: make(chan struct{}, 1)} }

// resource is the typed client of a kind; L is its list.
type resource[L listObject] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// listObject is a list of objects of the API.
type listObject interface {
	runtime.Object
	metav1.ListInterface
}

// selected selects the watched objects of a kind.
type selected struct {
	labels labels.Selector // nil: all
	name   string          // "": any
	field  fields.Selector // nil: any
	// concerns reports whether an object of that name matters: of others no data is stored, and no change wakes the
	// helper. nil: all matter.
	concerns func(name string) bool
	quiet    bool // no change wakes the helper
}

// options returns the selection for requests.
func (s selected) options(o metav1.ListOptions) metav1.ListOptions {
	if s.labels != nil {
		o.LabelSelector = s.labels.String()
	}
	switch {
	case s.name != "":
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", s.name).String()
	case s.field != nil:
		o.FieldSelector = s.field.String()
	}
	return o
}

// watchObjects stores a kind's objects and wakes the helper at every change of them; example is one of the kind.
func watchObjects[L listObject](m *mirror, of resource[L], example runtime.Object, s selected) cache.Store {
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return of.List(ctx, s.options(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if err := checkRestored(ctx, of, s, o); err != nil {
				return nil, err
			}
			return of.Watch(ctx, s.options(o))
		},
	}
	i := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(source, m.client), example, 0, nil)
	concerns := func(obj any) bool {
		if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		o, ok := obj.(metav1.Object)
		return s.concerns == nil || !ok || s.concerns(o.GetName())
	}
	if err := i.SetTransform(func(obj any) (any, error) { return trimmed(obj, concerns(obj)), nil }); err != nil {
		panic(fmt.Sprintf("follow objects: %v", err)) // only a started informer rejects it
	}
	wake := func(obj any) {
		if !s.quiet && concerns(obj) {
			wakeup.Notify(m.changed)
		}
	}
	handle, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: wake, DeleteFunc: wake, UpdateFunc: func(_, obj any) { wake(obj) },
	})
	if err != nil {
		panic(fmt.Sprintf("follow objects: %v", err)) // only a stopped informer rejects a handler
	}
	m.informers, m.synced = append(m.informers, i), append(m.synced, handle.HasSynced)
	return i.GetStore()
}

// run starts the informers and waits for the first full lists: until the API server answers, a helper changes nothing.
func (m *mirror) run(ctx context.Context) error {
	for _, i := range m.informers {
		go i.RunWithContext(ctx)
	}
	if !cache.WaitForCacheSync(ctx.Done(), m.synced...) {
		return errors.New("read objects from the API server: interrupted")
	}
	return nil
}

// listed returns the objects of a store, which are all of one type.
func listed[T any](s cache.Store) []T {
	objects := s.List()
	out := make([]T, len(objects))
	for i, obj := range objects {
		out[i] = obj.(T)
	}
	return out
}

// named returns the object of that name in a store, the zero value if there is none.
func named[T any](s cache.Store, namespace, name string) T {
	var none T
	obj, ok, err := s.GetByKey(cache.NewObjectName(namespace, name).String())
	if err != nil || !ok {
		return none // a store in memory has no errors
	}
	return obj.(T)
}

// tooLong replaces a text, and is rejected as damaged.
const tooLong = "too long"

// followed reports whether helpers read the record in the ConfigMap of that name: all except the gateways' reports for
// users.
func followed(name string) bool {
	id, known := records.IdentityOf(name)
	return known && id.Component != records.ComponentStatus
}

// trimmed returns an object without the fields that no helper reads; if it does not matter, without its data.
func trimmed(obj any, matters bool) any {
	if cm, ok := obj.(*corev1.ConfigMap); ok && !matters {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: cm.Name, Namespace: cm.Namespace, ResourceVersion: cm.ResourceVersion, UID: cm.UID}}
	}
	if cm, ok := obj.(*corev1.ConfigMap); ok && followed(cm.Name) {
		id, _ := records.IdentityOf(cm.Name)
		text, there := cm.Data[records.DataKey]
		if len(text) > records.MaxSize(id.Component) {
			text = tooLong
		}
		cm.Annotations, cm.Data, cm.BinaryData = nil, nil, nil
		if there {
			cm.Data = map[string]string{records.DataKey: text}
		}
	}
	if p, ok := obj.(*corev1.Pod); ok {
		return trimmedPod(p)
	}
	if l, ok := obj.(*coordinationv1.Lease); ok {
		for key, text := range l.Annotations {
			if len(text) > records.MaxSize(records.ComponentNode) {
				l.Annotations[key] = tooLong
			}
		}
	}
	if o, ok := obj.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return obj
}

// trimmedPod returns the fields of a pod that helpers read. Settings of its containers, with passwords, are in no
// helper.
func trimmedPod(p *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: p.Name, Namespace: p.Namespace, UID: p.UID, ResourceVersion: p.ResourceVersion, Labels: p.Labels, DeletionTimestamp: p.DeletionTimestamp,
		},
		Spec:   corev1.PodSpec{NodeName: p.Spec.NodeName, HostNetwork: p.Spec.HostNetwork},
		Status: corev1.PodStatus{Phase: p.Status.Phase, PodIP: p.Status.PodIP, PodIPs: p.Status.PodIPs},
	}
}

// recordOf decodes the record in a ConfigMap.
func recordOf[T records.Document](cm *corev1.ConfigMap) (T, error) {
	return records.Read[T](cm.Name, cm.Labels, cm.Data)
}
