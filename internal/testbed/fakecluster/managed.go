package fakecluster

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
)

// Field managers are made once for all clusters of a test binary. The tracker of fake.NewClientset makes a REST mapper
// of all kinds, and a field manager, for every write: that was most of the time of tests with many writes.
var (
	typeConverter = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) })
	managers      sync.Map // *managedfields.FieldManager by schema.GroupVersionKind
)

// noDefaults leaves objects as they are: defaulting is not simulated.
type noDefaults struct{}

func (noDefaults) Default(runtime.Object) {}

func managerOf(kind schema.GroupVersionKind) (*managedfields.FieldManager, error) {
	if known, ok := managers.Load(kind); ok {
		return known.(*managedfields.FieldManager), nil
	}
	manager, err := managedfields.NewDefaultFieldManager(typeConverter(), scheme.Scheme, noDefaults{}, scheme.Scheme,
		kind, kind.GroupVersion(), "", nil)
	if err == nil {
		managers.Store(kind, manager)
	}
	return manager, err
}

// managed returns a copy of an object that somebody writes, with its managed fields; live is nil if it is new.
func managed(live, object runtime.Object, by string) (runtime.Object, metav1.Object, error) {
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		return nil, nil, err
	}
	object = object.DeepCopyObject()
	object.GetObjectKind().SetGroupVersionKind(kinds[0])
	return manage(kinds[0], live, func(manager *managedfields.FieldManager, live runtime.Object) (runtime.Object, error) {
		return manager.Update(live, object, by)
	})
}

// applied returns the object as server-side apply makes it; live is nil if it is new.
func applied(live runtime.Object, a clienttesting.PatchActionImpl) (runtime.Object, metav1.Object, error) {
	patch := new(unstructured.Unstructured)
	if err := patch.UnmarshalJSON(a.Patch); err != nil {
		return nil, nil, err
	}
	patch.SetName(a.Name)
	return manage(patch.GroupVersionKind(), live, func(manager *managedfields.FieldManager, live runtime.Object) (runtime.Object, error) {
		return manager.Apply(live, patch, a.PatchOptions.FieldManager, value(a.PatchOptions.Force))
	})
}

// manage has the field manager of a kind write an object. It gets a copy of the live one: field managers change it.
func manage(kind schema.GroupVersionKind, live runtime.Object,
	write func(*managedfields.FieldManager, runtime.Object) (runtime.Object, error),
) (runtime.Object, metav1.Object, error) {
	manager, err := managerOf(kind)
	if err != nil {
		return nil, nil, err
	}
	if live != nil {
		live = live.DeepCopyObject()
	} else if live, err = scheme.Scheme.New(kind); err != nil {
		return nil, nil, err
	}
	live.GetObjectKind().SetGroupVersionKind(kind)
	after, err := write(manager, live)
	if err != nil {
		return nil, nil, err
	}
	about, err := meta.Accessor(after)
	return after, about, err
}
