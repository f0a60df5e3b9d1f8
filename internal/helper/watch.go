//go:build linux

package helper

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"liqonet.io/liqonet/internal/records"
)

// mirror keeps the objects that a helper follows and wakes it when one changes.
type mirror struct {
	changed   chan struct{}
	factories []informers.SharedInformerFactory
	synced    []cache.InformerSynced
}

func newMirror() *mirror { return &mirror{changed: make(chan struct{}, 1)} }

// factory returns an informer factory of the mirror's own, limited to a namespace ("" for all) and by options.
func (m *mirror) factory(client kubernetes.Interface, namespace string, tweak func(*metav1.ListOptions)) informers.SharedInformerFactory {
	f := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithNamespace(namespace),
		informers.WithTweakListOptions(tweak),
		informers.WithTransform(dropManagedFields))
	m.factories = append(m.factories, f)
	return f
}

func dropManagedFields(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return obj, nil
}

// follow wakes the helper at every change that an informer reports.
func (m *mirror) follow(i cache.SharedIndexInformer) cache.Store {
	wake := func(any) { notify(m.changed) }
	handle, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: wake, DeleteFunc: wake, UpdateFunc: func(_, obj any) { wake(obj) },
	})
	if err != nil {
		panic(fmt.Sprintf("follow objects: %v", err)) // only a stopped informer refuses a handler
	}
	m.synced = append(m.synced, handle.HasSynced)
	return i.GetStore()
}

// run starts the informers and waits for the first full lists.
func (m *mirror) run(ctx context.Context) error {
	for _, f := range m.factories {
		f.Start(ctx.Done())
	}
	if !cache.WaitForCacheSync(ctx.Done(), m.synced...) {
		return errors.New("read objects from the API server: interrupted")
	}
	return nil
}

func byLabel(selector labels.Selector) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) { o.LabelSelector = selector.String() }
}

func byField(field, value string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) { o.FieldSelector = fields.OneTermEqualSelector(field, value).String() }
}

// recordOf decodes the record in a ConfigMap.
func recordOf[T records.Document](cm *corev1.ConfigMap) (T, error) {
	r, err := records.Decode[T](cm.Data[records.DataKey])
	if err != nil {
		return r, fmt.Errorf("read ConfigMap %s: %w", cm.Name, err)
	}
	return r, nil
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
