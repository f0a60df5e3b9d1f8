package fakecluster

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/records"
)

// writes carries out writes as an API server does: it gives objects UIDs, resource versions and managed fields, and
// refuses writes whose preconditions do not hold. The fake alone has neither of the first two, so that every write
// would succeed whatever it was computed from.
type writes struct {
	store clienttesting.ObjectTracker
	last  int
}

// preconditions are what a write demands of the object that it changes; "" demands nothing.
type preconditions struct {
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion"`
}

// check compares them with the live object; nil: there is none.
func (p preconditions) check(a clienttesting.Action, name string, live metav1.Object) error {
	conflict := func(format string, args ...any) error {
		return apierrors.NewConflict(a.GetResource().GroupResource(), name, fmt.Errorf(format, args...))
	}
	switch {
	case live == nil && p.UID != "":
		return conflict("uid mismatch: the provided object specified uid %s, and no existing object was found", p.UID)
	case live == nil:
		return nil
	case p.UID != "" && p.UID != live.GetUID():
		return conflict("precondition failed: UID in precondition: %s, UID in object meta: %s", p.UID, live.GetUID())
	case p.ResourceVersion != "" && p.ResourceVersion != live.GetResourceVersion():
		return conflict("the object has been modified; please apply your changes to the latest version and try again")
	}
	return nil
}

// checked returns the object that an action is about, nil if there is none, provided that the preconditions hold.
func (w *writes) checked(a clienttesting.Action, name string, p preconditions) (runtime.Object, error) {
	live, err := w.store.Get(a.GetResource(), a.GetNamespace(), name)
	if apierrors.IsNotFound(err) {
		return nil, p.check(a, name, nil)
	}
	if err != nil {
		return nil, err
	}
	about, err := meta.Accessor(live)
	if err != nil {
		return nil, err
	}
	return live, p.check(a, name, about)
}

// react is a reactor for all requests; it leaves reads, deletions and subresources that are created to the fake.
func (w *writes) react(action clienttesting.Action) (bool, runtime.Object, error) {
	switch a := action.(type) {
	case clienttesting.CreateActionImpl:
		if a.GetSubresource() != "" {
			return false, nil, nil
		}
		after, err := w.create(a)
		return true, after, err
	case clienttesting.UpdateActionImpl:
		after, err := w.update(a)
		return true, after, err
	case clienttesting.PatchActionImpl:
		after, err := w.patch(a)
		return true, after, err
	case clienttesting.DeleteActionImpl:
		var p preconditions
		if of := a.DeleteOptions.Preconditions; of != nil {
			p = preconditions{UID: value(of.UID), ResourceVersion: value(of.ResourceVersion)}
		}
		_, err := w.checked(a, a.Name, p)
		if err == nil && a.GetResource().Resource == "namespaces" {
			w.empty(a.Name)
		}
		return err != nil, nil, err
	}
	return false, nil, nil
}

// empty removes the lock of runs, which liqonet leaves to the end of its namespace, as an API server does. The rest it
// removes itself: what tests find there is left.
func (w *writes) empty(namespace string) {
	_ = w.store.Delete(coordinationv1.SchemeGroupVersion.WithResource("leases"), namespace, records.LockName)
}

func (w *writes) create(a clienttesting.CreateActionImpl) (runtime.Object, error) {
	after, about, err := managed(nil, a.Object, a.CreateOptions.FieldManager)
	if err != nil {
		return nil, err
	}
	w.stamp(about)
	return after, w.store.Create(a.GetResource(), after, a.GetNamespace(), a.CreateOptions)
}

func (w *writes) update(a clienttesting.UpdateActionImpl) (runtime.Object, error) {
	wanted, err := meta.Accessor(a.Object)
	if err != nil {
		return nil, err
	}
	live, err := w.checked(a, wanted.GetName(), preconditions{UID: wanted.GetUID(), ResourceVersion: wanted.GetResourceVersion()})
	if err == nil && live == nil {
		err = apierrors.NewNotFound(a.GetResource().GroupResource(), wanted.GetName())
	}
	if err != nil {
		return nil, err
	}
	after, about, err := managed(live, a.Object, a.UpdateOptions.FieldManager)
	if err != nil {
		return nil, err
	}
	w.stamp(about)
	return after, w.store.Update(a.GetResource(), after, a.GetNamespace(), a.UpdateOptions)
}

// patch carries out a patch, of a dry run on a copy; one that changes nothing leaves the resource version alone.
func (w *writes) patch(a clienttesting.PatchActionImpl) (runtime.Object, error) {
	var demands struct {
		Metadata preconditions `json:"metadata"`
	}
	if err := json.Unmarshal(a.Patch, &demands); err != nil {
		demands.Metadata = preconditions{} // operations of a JSON patch have no preconditions of this kind
	}
	live, err := w.checked(a, a.Name, demands.Metadata)
	if err != nil {
		return nil, err
	}
	var after runtime.Object
	var about metav1.Object
	if a.GetPatchType() == types.ApplyPatchType {
		after, about, err = applied(live, a)
	} else {
		after, about, err = patched(live, a)
	}
	switch {
	case err != nil || live != nil && reflect.DeepEqual(live, after) || len(a.PatchOptions.DryRun) > 0:
		return after, err
	case live == nil:
		w.stamp(about)
		return after, w.store.Create(a.GetResource(), after, a.GetNamespace())
	}
	w.stamp(about)
	return after, w.store.Update(a.GetResource(), after, a.GetNamespace())
}

// patched returns the object as a JSON or merge patch makes it.
func patched(live runtime.Object, a clienttesting.PatchActionImpl) (runtime.Object, metav1.Object, error) {
	if live == nil {
		return nil, nil, apierrors.NewNotFound(a.GetResource().GroupResource(), a.Name)
	}
	scratch := clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder())
	if err := scratch.Add(live.DeepCopyObject()); err != nil {
		return nil, nil, err
	}
	_, after, err := clienttesting.ObjectReaction(scratch)(a)
	if err != nil {
		return nil, nil, err
	}
	return managed(live, after, a.PatchOptions.FieldManager)
}

// stamp gives an object its next resource version, and a UID if it has none.
func (w *writes) stamp(about metav1.Object) {
	w.last++
	about.SetResourceVersion(strconv.Itoa(w.last))
	if about.GetUID() == "" {
		about.SetUID(types.UID("uid-" + about.GetResourceVersion()))
	}
}

// value returns what p points to; the zero value for nil.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
