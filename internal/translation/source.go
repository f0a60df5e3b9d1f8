package translation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"liqonet.io/liqonet/internal/records"
)

// source follows the records of the cluster.
type source struct {
	log     *slog.Logger
	factory informers.SharedInformerFactory
	store   cache.Store
	synced  cache.InformerSynced
	changed chan struct{} // of size one: what comes together is read once
	latest  atomic.Pointer[view]
}

func newSource(client kubernetes.Interface, namespace string, log *slog.Logger) *source {
	s := &source{log: log, changed: make(chan struct{}, 1)}
	s.factory = informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			// Reports change every ten seconds.
			o.LabelSelector = fmt.Sprintf("%s notin (%s,%s,%s)", records.LabelComponent, records.ComponentStatus, records.ComponentGateway, records.ComponentIPAM)
		}),
		informers.WithTransform(recordOnly))
	informer := s.factory.Core().V1().ConfigMaps().Informer()
	wake := func(any) {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
	handle, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: wake, DeleteFunc: wake, UpdateFunc: func(_, now any) { wake(now) },
	})
	if err != nil {
		panic(fmt.Sprintf("follow records: %v", err)) // only a stopped informer refuses a handler
	}
	s.store, s.synced = informer.GetStore(), handle.HasSynced
	return s
}

// recordOnly drops what is not needed of an object.
func recordOnly(object any) (any, error) {
	if m, ok := object.(metav1.Object); ok {
		m.SetManagedFields(nil)
	}
	return object, nil
}

// current returns what the records say now; nil: they have not all been read yet.
func (s *source) current() *view { return s.latest.Load() }

// run follows the records until ctx ends.
func (s *source) run(ctx context.Context) error {
	s.factory.Start(ctx.Done())
	defer s.factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), s.synced) {
		return nil // ctx has ended
	}
	for {
		s.read()
		select {
		case <-ctx.Done():
			return nil
		case <-s.changed:
		}
	}
}

// read makes a view of what the informer has.
func (s *source) read() {
	var objects []*corev1.ConfigMap
	for _, object := range s.store.List() {
		objects = append(objects, object.(*corev1.ConfigMap))
	}
	v := newView(objects)
	if err := errors.Join(v.err, v.cluster.Damage()); err != nil {
		s.log.Warn("not all records can be read", "error", err)
	}
	s.log.Info("records read", "peers", len(v.cluster.Peers()))
	s.latest.Store(&v)
}
