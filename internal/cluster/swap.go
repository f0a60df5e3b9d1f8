package cluster

import (
	"context"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// swapBackoff spreads the writers of one object, of whom one succeeds at a time. The pauses add up to 3 to 6 seconds.
var swapBackoff = wait.Backoff{Steps: 12, Duration: 10 * time.Millisecond, Factor: 1.6, Jitter: 1}

// Swap brings one object into the state that want computes from the live one, provided that the live one is still the same
// when it is written. Otherwise want is called again, with what another writer left; it must have no effect that may not
// be repeated. live is nil where there is no object. want returns nil to leave all as it is. Of the object at, only kind,
// namespace and name count.
func Swap[T Object](ctx context.Context, c *Cluster, at T, want func(live T) (T, error)) (Change, error) {
	r, begun, err := c.begin(at)
	if err != nil {
		return Change{}, err
	}
	var change Change
	err = retry.OnError(swapBackoff, overtaken, func() error {
		change, err = swapOnce(ctx, c, r, at, begun, want)
		return err
	})
	return change, err
}

// overtaken reports whether an error says that the object is no longer as it was read.
func overtaken(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// swapOnce is one read, computation and write.
func swapOnce[T Object](ctx context.Context, c *Cluster, r resource, at T, change Change, want func(live T) (T, error)) (Change, error) {
	before, err := r.get(ctx, at.GetName())
	var live T
	switch {
	case apierrors.IsNotFound(err):
		before, change.Action = nil, Absent
	case err != nil:
		return Change{}, fmt.Errorf("read %s in cluster %q: %w", operand(at), c.Context, err)
	case !ours(before):
		return Change{}, &ForeignError{Object: operand(at)}
	default:
		change.Action = Unchanged
		live, _ = before.DeepCopyObject().(T)
	}
	wanted, err := want(live)
	if err != nil {
		return Change{}, err
	}
	switch {
	case reflect.ValueOf(wanted).IsNil():
		return change, nil
	case before == nil:
		change.Action = Created
		if _, err := r.create(ctx, wanted); err != nil {
			return Change{}, fmt.Errorf("create %s in cluster %q: %w", operand(at), c.Context, err)
		}
		return change, nil
	}
	return c.replace(ctx, r, before, wanted, change)
}

// replace applies an object, provided that the live one is still as it was before.
func (c *Cluster) replace(ctx context.Context, r resource, before, wanted Object, change Change) (Change, error) {
	same, err := has(before, wanted)
	if err != nil {
		return Change{}, fmt.Errorf("compare %s: %w", operand(wanted), err)
	}
	if same {
		return change, nil
	}
	fields, err := document(wanted)
	if err != nil {
		return Change{}, fmt.Errorf("encode %s: %w", operand(wanted), err)
	}
	// With a UID, an object that is gone is a conflict, and is not created anew.
	about := fields["metadata"].(map[string]any) //nolint:forcetypeassert // document makes sure of it
	about["uid"], about["resourceVersion"] = string(before.GetUID()), before.GetResourceVersion()
	return c.send(ctx, r, fields, before, change)
}

// has reports whether a live object has every field that another one names.
func has(live, wanted Object) (bool, error) {
	have, err := content(live)
	if err != nil {
		return false, err
	}
	want, err := content(wanted)
	if err != nil {
		return false, err
	}
	return includes(have, want), nil
}

func includes(have, want any) bool {
	fields, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(have, want)
	}
	all, ok := have.(map[string]any)
	if !ok {
		return false
	}
	for name, value := range fields {
		if !includes(all[name], value) {
			return false
		}
	}
	return true
}
