//go:build linux

// Package helper is the in-cluster mode of the binary: a loop on each node and one in each gateway that keep the
// kernel in the state that the records ask for, answer and send echoes, and report what they see.
//
// The kernel outlives the helper: nothing is undone when a helper ends. A record that cannot be read stops
// changes, not traffic: the kernel stays as it is, and the helper is not ready.
package helper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"liqonet.io/liqonet/netops"
)

// Env is what every helper is given.
type Env struct {
	Client    kubernetes.Interface
	Namespace string
	Log       *slog.Logger
	// HealthAddress is where probes and metrics are served, such as "127.0.0.1:6093".
	HealthAddress string
}

// resync is how often a full pass runs although nothing was reported to have changed.
const resync = 30 * time.Second

// reconciler brings the kernel to a wanted state. One goroutine uses it.
type reconciler struct {
	kernel  *netops.Kernel
	log     *slog.Logger
	metrics *metrics
}

// pass applies what differs from the wanted state and returns the state that was found. What needs a link that
// is made elsewhere and is not there yet waits for a later pass.
func (r *reconciler) pass(want netops.State) (netops.State, error) {
	have, err := r.kernel.Observe()
	if err != nil {
		return netops.State{}, fmt.Errorf("observe kernel: %w", err)
	}
	want = want.Reachable(have)
	plan := netops.Diff(have, want)
	if plan.Empty() {
		return have, nil
	}
	r.log.Info("kernel differs from what is wanted", "plan", plan.String())
	r.metrics.corrections.Inc()
	return have, r.kernel.Apply(plan)
}

// run reads the objects that a helper follows, then turns its loop beside the other tasks until ctx ends.
func run(ctx context.Context, e Env, h *health, m *mirror, metrics *metrics, kernel *netops.Kernel,
	step func(context.Context) error, tasks ...func(context.Context)) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return h.serve(ctx, e.HealthAddress, metrics.registry) })
	group.Go(func() error {
		if err := m.run(ctx); err != nil {
			return err
		}
		drift, err := kernel.Watch(ctx)
		if err != nil {
			return err
		}
		for _, task := range tasks {
			group.Go(func() error { task(ctx); return nil })
		}
		return loop(ctx, h, e.Log, step, m.changed, drift)
	})
	return group.Wait()
}

// errWaiting says that a record is missing which the CLI writes in its own time. The kernel is left as it is.
var errWaiting = errors.New("not written yet")

// loop calls step at the start, whenever one of the channels delivers, and at every resync, until ctx ends.
// Errors of a step are logged, shown by the readiness probe, and tried again soon.
func loop(ctx context.Context, h *health, log *slog.Logger, step func(context.Context) error, events ...<-chan struct{}) error {
	const retry = time.Second
	wake := merge(ctx, events...)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
		case <-timer.C:
		}
		next := resync
		err := step(ctx)
		switch {
		case err == nil, errors.Is(err, context.Canceled):
		case errors.Is(err, errWaiting):
			log.Info("nothing to do yet", "reason", err)
		default:
			log.Error("pass ended with an error; the next one is soon", "error", err)
			next = retry
		}
		h.set(err)
		timer.Reset(next)
	}
}

// merge collapses events of several channels into one channel of size one.
func merge(ctx context.Context, events ...<-chan struct{}) <-chan struct{} {
	out := make(chan struct{}, 1)
	for _, c := range events {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case _, ok := <-c:
					if !ok {
						return
					}
					notify(out)
				}
			}
		}()
	}
	return out
}

// notify leaves a wake-up in a channel of size one; one that is already there serves for both.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
