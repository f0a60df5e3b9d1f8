package progress

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"liqonet.io/liqonet/internal/cluster"
)

// EachOf does something for all at once. One that fails does not stop the others.
func EachOf[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	var group errgroup.Group
	for i, one := range all {
		group.Go(func() error {
			errs[i] = do(one)
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	return errors.Join(errs...)
}

// Persist tries something, which may be done twice, until no API server is lost on the way or ctx ends.
func Persist(ctx context.Context, do func(context.Context) error) (err error) {
	_ = wait.PollUntilContextCancel(ctx, persistPause, true, func(ctx context.Context) (bool, error) {
		err = do(ctx)
		return !cluster.Lost(err), nil
	})
	return err
}

// persistPause is between two attempts to reach an API server that is lost.
const persistPause = 500 * time.Millisecond
