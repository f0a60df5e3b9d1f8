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
	var change Change
	err := retry.OnError(swapBackoff, overtaken, func() (err error) {
		change, err = swapOnce(ctx, c, at, want)
		return err
	})
	return change, err
}

// overtaken reports whether an error says that the object is no longer as it was read.
func overtaken(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// swapOnce is one read, computation and write.
func swapOnce[T Object](ctx context.Context, c *Cluster, at T, want func(live T) (T, error)) (Change, error) {
	t, err := c.find(ctx, at, at.GetNamespace(), at.GetName())
	var live T
	asItIs := Absent
	switch {
	case err != nil:
		return Change{}, err
	case t.live != nil && !ours(t.live):
		return Change{}, &ForeignError{Object: t.operand()}
	case t.live != nil:
		live, _ = t.live.DeepCopyObject().(T)
		asItIs = Unchanged
	}
	wanted, err := want(live)
	switch {
	case err != nil:
		return Change{}, err
	case reflect.ValueOf(wanted).IsNil(), t.live != nil && len(lacking(content(t.live), content(wanted))) == 0:
		return t.became(asItIs), nil
	case t.live == nil:
		if _, err := t.resource.create(ctx, wanted); err != nil {
			return Change{}, fmt.Errorf("create %s in cluster %q: %w", t.operand(), c.Context, err)
		}
		return t.became(Created), nil
	}
	// With a UID, an object that is gone is a conflict, and is not created anew.
	fields := document(wanted)
	about := metadata(fields)
	about["uid"], about["resourceVersion"] = string(t.live.GetUID()), t.live.GetResourceVersion()
	return c.send(ctx, t, fields)
}
