package clustertest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// versions gives objects UIDs and resource versions as an API server does, and refuses writes whose preconditions on
// these do not hold. The fake alone has neither, so that every write would succeed whatever it was computed from.
type versions struct {
	kube *fake.Clientset
	last int
}

func (v *versions) next() string {
	v.last++
	return strconv.Itoa(v.last)
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

// live returns the object that an action is about; nil: there is none.
func (v *versions) live(a clienttesting.Action, name string) (runtime.Object, metav1.Object, error) {
	object, err := v.kube.Tracker().Get(a.GetResource(), a.GetNamespace(), name)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	about, err := meta.Accessor(object)
	return object, about, err
}

// react is a reactor for all requests.
func (v *versions) react(action clienttesting.Action) (bool, runtime.Object, error) {
	switch a := action.(type) {
	case clienttesting.CreateActionImpl:
		about, err := meta.Accessor(a.Object)
		if err == nil && a.GetSubresource() == "" {
			v.born(about)
		}
		return err != nil, nil, err
	case clienttesting.UpdateActionImpl:
		return v.update(a)
	case clienttesting.PatchActionImpl:
		return v.patch(a)
	case clienttesting.DeleteActionImpl:
		_, live, err := v.live(a, a.Name)
		if p := a.DeleteOptions.Preconditions; err == nil && p != nil {
			err = preconditions{UID: value(p.UID), ResourceVersion: value(p.ResourceVersion)}.check(a, a.Name, live)
		}
		return err != nil, nil, err
	}
	return false, nil, nil
}

func (v *versions) born(about metav1.Object) {
	about.SetResourceVersion(v.next())
	if about.GetUID() == "" {
		about.SetUID(types.UID("uid-" + about.GetResourceVersion()))
	}
}

func (v *versions) update(a clienttesting.UpdateActionImpl) (bool, runtime.Object, error) {
	wanted, err := meta.Accessor(a.Object)
	if err != nil {
		return true, nil, err
	}
	_, live, err := v.live(a, wanted.GetName())
	if err == nil {
		err = preconditions{UID: wanted.GetUID(), ResourceVersion: wanted.GetResourceVersion()}.check(a, wanted.GetName(), live)
	}
	if err != nil {
		return true, nil, err
	}
	wanted.SetResourceVersion(v.next())
	return false, nil, nil
}

// checked returns the object that a patch is about, nil if there is none, provided that the patch's preconditions hold.
func (v *versions) checked(a clienttesting.PatchActionImpl) (runtime.Object, error) {
	before, live, err := v.live(a, a.Name)
	if err != nil {
		return nil, err
	}
	var patch struct {
		Metadata preconditions `json:"metadata"`
	}
	// Operations of a JSON patch have no preconditions of this kind.
	if err := json.Unmarshal(a.Patch, &patch); err == nil {
		return before, patch.Metadata.check(a, a.Name, live)
	}
	return before, nil
}

// patch carries out a patch; one that changes nothing leaves the resource version alone.
func (v *versions) patch(a clienttesting.PatchActionImpl) (bool, runtime.Object, error) {
	before, err := v.checked(a)
	if err != nil {
		return true, nil, err
	}
	_, after, err := clienttesting.ObjectReaction(v.kube.Tracker())(a)
	if err != nil || before != nil && reflect.DeepEqual(before, after) {
		return true, after, err
	}
	about, err := meta.Accessor(after)
	if err != nil {
		return true, nil, err
	}
	v.born(about)
	return true, after, v.kube.Tracker().Update(a.GetResource(), after, a.GetNamespace())
}

// value returns what p points to; the zero value for nil.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
