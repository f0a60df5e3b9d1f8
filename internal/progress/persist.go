package progress

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"liqonet.io/liqonet/internal/kube"
)

// EachOf calls do for all items in parallel. An error does not stop the others.
func EachOf[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, one := range all {
		group.Go(func() { errs[i] = do(one) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// Persist retries an idempotent operation while an API server is unavailable, until ctx ends.
func Persist(ctx context.Context, do func(context.Context) error) (err error) {
	_ = wait.PollUntilContextCancel(ctx, persistPause, true, func(ctx context.Context) (bool, error) {
		err = do(ctx)
		return !kube.Lost(err), nil
	})
	return err
}

// persistPause is the interval between two attempts to reach an unavailable API server.
const persistPause = 500 * time.Millisecond
