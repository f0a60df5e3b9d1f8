package kube

import (
	"context"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Of several writers of one object one succeeds at a time. The others try again after pauses that grow up to one or two
// seconds. They give up after a time, not after a number of attempts: how many attempts fail depends on the speed of
// the API server.
const swapPatience = 2 * time.Minute

var swapPauses = wait.Backoff{Steps: 10, Duration: 10 * time.Millisecond, Factor: 1.6, Jitter: 1}

// Swap brings one object into the state that want computes from the live one, provided that the live one is still the
// same when it is written. Otherwise want is called again, with what another writer left; it must have no effect that
// may not be repeated. live is nil where there is no object. want returns nil to leave all as it is. Of the object at,
// only kind, namespace and name count.
func Swap[T Object](ctx context.Context, c *Cluster, at T, want func(live T) (T, error)) (Change, error) {
	pauses := swapPauses
	for began := time.Now(); ; {
		change, overtaken, err := swapOnce(ctx, c, at, want)
		if !overtaken || time.Since(began) > swapPatience {
			return change, err
		}
		select {
		case <-time.After(pauses.Step()):
		case <-ctx.Done():
			return change, fmt.Errorf("%w: %w", err, context.Cause(ctx))
		}
	}
}

// swapOnce is one read, computation and write. overtaken is set if the object has changed since it was read.
func swapOnce[T Object](ctx context.Context, c *Cluster, at T, want func(live T) (T, error)) (_ Change, overtaken bool, err error) {
	t, err := c.find(ctx, at, at.GetNamespace(), at.GetName())
	var live T
	asItIs := Absent
	switch {
	case err != nil:
		return Change{}, false, err
	case t.live != nil && !ours(t.live):
		return Change{}, false, t.foreign()
	case t.live != nil:
		live, _ = t.live.DeepCopyObject().(T)
		asItIs = Unchanged
	}
	wanted, err := want(live)
	switch {
	case err != nil:
		return Change{}, false, err
	case reflect.ValueOf(wanted).IsNil(), t.live != nil && len(lacking(content(t.live), content(wanted))) == 0:
		return t.became(asItIs), false, nil
	case t.live == nil:
		if _, err := t.resource.create(ctx, wanted); err != nil {
			return Change{}, apierrors.IsAlreadyExists(err), fmt.Errorf("create %s in cluster %q: %w", t.operand(), c.Context, err)
		}
		return t.became(Created), false, nil
	}
	fields := document(wanted)
	// With a UID, an object that is gone is a conflict, and is not created anew.
	about := metadata(fields)
	about["uid"], about["resourceVersion"] = string(t.live.GetUID()), t.live.GetResourceVersion()
	change, err := c.send(ctx, t, fields)
	return change, apierrors.IsConflict(err), err
}
