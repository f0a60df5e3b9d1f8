package plan

import (
	"context"
	"errors"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
)

// Locked runs an operation that writes to clusters under their locks, which its first write takes: an operation that
// writes nothing waits for no other. If another run has written since the operation began, or holds a lock, the
// operation begins again under the locks. do finds the clusters replaced by locked ones. Operations within do share its
// locks.
func Locked[R any](ctx context.Context, r progress.Reporter, do func(context.Context) (R, error), clusters ...**kube.Cluster) (R, error) {
	locks := kube.NewLocks(clusters...)
	if locks == nil {
		return do(ctx)
	}
	defer locks.Release(ctx)
	for {
		result, err := do(locks.Begin(ctx))
		if err == nil || ctx.Err() != nil || isFinal(err) || !locks.Stale(ctx, err) {
			return result, locks.Explain(err)
		}
		if err := locks.Await(ctx, r.Note); err != nil {
			return result, err
		}
		r.Note("the clusters have changed since they were read: beginning again")
	}
}

// isFinal reports whether an error cannot come from another run.
func isFinal(err error) bool {
	return errors.As(err, new(*progress.InputError)) || errors.As(err, new(*DifferenceError)) ||
		errors.As(err, new(*kube.PermissionError)) || errors.As(err, new(*kube.ReachError))
}
