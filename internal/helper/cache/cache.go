// Package cache has the objects of the API server that a helper reads. They are watched, and stored without what no
// helper uses.
package cache

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	tools "k8s.io/client-go/tools/cache"

	"liqonet.io/liqonet/internal/helper/wakeup"
)

// Store has the objects of one kind.
type Store = tools.Store

// Cache stores the objects that a helper watches and wakes it when one changes.
type Cache struct {
	// Changed gets a signal when an object changes. It is of size one; others may send to it as well.
	Changed chan struct{}

	client    any // of all of them, to determine its features
	informers []tools.SharedIndexInformer
	synced    []tools.InformerSynced
}

// New returns an empty Cache of the objects that a client reads.
func New(client any) *Cache { return &Cache{client: client, Changed: make(chan struct{}, 1)} }

// Resource is the typed client of a kind; L is its list.
type Resource[L List] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// List is a list of objects of the API.
type List interface {
	runtime.Object
	metav1.ListInterface
}

// Selection selects the watched objects of a kind.
type Selection struct {
	Labels labels.Selector // nil: all
	Name   string          // "": any
	Field  fields.Selector // nil: any
	// Concerns reports whether an object of that name matters: of others no data is stored, and no change wakes the
	// helper. nil: all matter.
	Concerns func(name string) bool
	Quiet    bool // no change wakes the helper
}

// Options returns the selection for requests.
func (s Selection) Options(o metav1.ListOptions) metav1.ListOptions {
	if s.Labels != nil {
		o.LabelSelector = s.Labels.String()
	}
	switch {
	case s.Name != "":
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", s.Name).String()
	case s.Field != nil:
		o.FieldSelector = s.Field.String()
	}
	return o
}

// Watch stores a kind's objects and wakes the helper at every change of them; example is one of the kind.
func Watch[L List](c *Cache, of Resource[L], example runtime.Object, s Selection) Store {
	source := &tools.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return of.List(ctx, s.Options(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if err := checkRestored(ctx, of, s, o); err != nil {
				return nil, err
			}
			return of.Watch(ctx, s.Options(o))
		},
	}
	i := tools.NewSharedIndexInformer(tools.ToListWatcherWithWatchListSemantics(source, c.client), example, 0, nil)
	concerns := func(obj any) bool {
		name, err := tools.DeletionHandlingObjectToName(obj)
		return s.Concerns == nil || err != nil || s.Concerns(name.Name)
	}
	// Only a started informer rejects a transform.
	utilruntime.Must(i.SetTransform(func(obj any) (any, error) { return Trimmed(obj, concerns(obj)), nil }))
	wake := func(obj any) {
		if !s.Quiet && concerns(obj) {
			wakeup.Notify(c.Changed)
		}
	}
	handle, err := i.AddEventHandler(tools.ResourceEventHandlerFuncs{
		AddFunc: wake, DeleteFunc: wake, UpdateFunc: func(_, obj any) { wake(obj) },
	})
	utilruntime.Must(err) // only a stopped informer rejects a handler
	c.informers, c.synced = append(c.informers, i), append(c.synced, handle.HasSynced)
	return i.GetStore()
}

// Run starts the informers and waits for the first full lists: until the API server answers, a helper changes nothing.
func (c *Cache) Run(ctx context.Context) error {
	for _, i := range c.informers {
		go i.RunWithContext(ctx)
	}
	if !tools.WaitForCacheSync(ctx.Done(), c.synced...) {
		return errors.New("read objects from the API server: interrupted")
	}
	return nil
}

// Listed returns the objects of a store, which are all of one type.
func Listed[T any](s Store) []T {
	objects := s.List()
	out := make([]T, len(objects))
	for i, obj := range objects {
		out[i] = obj.(T)
	}
	return out
}

// Named returns the object of that name in a store, the zero value if there is none.
func Named[T any](s Store, namespace, name string) T {
	var none T
	obj, ok, err := s.GetByKey(tools.NewObjectName(namespace, name).String())
	if err != nil || !ok {
		return none // a store in memory has no errors
	}
	return obj.(T)
}
