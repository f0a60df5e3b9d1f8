//go:build linux

// Package helper is the in-cluster mode of the binary: a loop on each node and one in each gateway that keep the
// kernel in the state that the records ask for, answer and send echoes, and report what they see.
//
// The kernel outlives the helper: nothing is undone when a helper ends. A record that cannot be read concerns its own
// peering alone: what it said last goes on, and the helper serves all others as ever.
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
	"liqonet.io/liqonet/netops/nft"
)

// Env is what every helper is given.
type Env struct {
	Client    kubernetes.Interface
	Dialer    *Dialer // of the client; nil: where the API server is, is not known
	Namespace string
	Log       *slog.Logger
	// HealthAddress is where probes and metrics are served, such as "127.0.0.1:6093".
	HealthAddress string
}

// resync is how often a full pass runs although nothing was reported to have changed; less often if that would take
// more of the time than fullShare, while other passes have to wait for it.
const (
	resync    = 30 * time.Second
	fullShare = 200 // one part of so many
)

// describeEvery is how often the log has the whole state of the kernel, which has each change, too. It is for reports
// of faults: nobody but the helper can read the kernel of a gateway.
const describeEvery = 24 * time.Hour

// reconciler brings the kernel to a wanted state. One goroutine uses it.
type reconciler struct {
	kernel  *netops.Kernel
	log     *slog.Logger
	metrics *metrics
	drift   *drift
	// reached is the state in which the last pass left the kernel; nil: not known.
	reached func() netops.State
	// complete is when the last pass read the kernel and found or made all that is wanted, zero if something is left,
	// and observed are the kernel's changes until then.
	complete time.Time
	observed uint64
	took     time.Duration // that pass
	// described is when the log had the kernel's state last.
	described time.Time
	// forward are the chains of others that forwarded packets pass, as the last pass found them.
	forward []nft.ForwardChain
}

func newReconciler(k *netops.Kernel, log *slog.Logger, m *metrics) reconciler {
	return reconciler{kernel: k, log: log, metrics: m, drift: newDrift(log, m)}
}

// pass applies what differs from the wanted state. What needs a link that is made elsewhere and is not there yet
// waits for a later pass.
func (r *reconciler) pass(want netops.State) error {
	r.metrics.passes.Inc()
	r.complete = time.Time{}
	r.observed, _ = r.kernel.Changes()
	begin := time.Now()
	defer func() { r.metrics.duration.Observe(time.Since(begin).Seconds()) }()
	have, err := r.kernel.Observe()
	if err != nil {
		return fmt.Errorf("observe kernel: %w", err)
	}
	r.forward = have.ForwardChains
	all := len(want.Links)
	want = want.Reachable(have)
	if plan := netops.Diff(have, want); !plan.Empty() {
		text := abridged(plan)
		// Its begin.
		r.log.Info("kernel differs from what is wanted", "steps", len(plan.Steps), "plan", fmt.Sprintf("%.600s", text))
		r.log.Debug("kernel is changed", "wholePlan", text)
		r.metrics.changes.Inc()
		if r.reached != nil {
			r.drift.note(drifted(have, r.reached())...)
		}
		r.reached = nil
		if err := r.kernel.Apply(plan); err != nil {
			return err
		}
	} else if time.Since(r.described) > describeEvery {
		r.log.Info("kernel state", "state", abridged(netops.Diff(netops.State{}, want))) // there is no difference
		r.described = time.Now()
	}
	r.reached = func() netops.State { return want }
	if len(want.Links) == all {
		r.complete, r.took = begin, time.Since(begin)
	}
	return nil
}

// maxListed bounds the steps of a plan in a line of the log. Routes come last, and a gateway can have one for each pod.
const maxListed = 300

func abridged(p netops.Plan) string {
	listed := p.Steps[:min(maxListed, len(p.Steps))]
	return fmt.Sprintf("%s%d of %d steps", netops.Plan{Steps: listed}, len(listed), len(p.Steps))
}

// undisturbed reports whether the kernel is as the last pass left it, as far as is known. Now and then it is read
// nevertheless.
func (r *reconciler) undisturbed() bool {
	changes, watched := r.kernel.Changes()
	return watched && changes == r.observed && time.Since(r.complete) < max(resync, fullShare*r.took)
}

// service is what every helper consists of.
type service struct {
	Env
	health  *liveness
	mirror  *mirror
	metrics *metrics
	kernel  *netops.Kernel
	first   func(context.Context) error // the first pass, before the objects of others are read; nil: none
	step    func(context.Context) error // one pass of the loop
	tasks   []func(context.Context)     // what runs beside the loop
}

// run makes the first pass, reads the objects that the helper follows, then turns its loop beside the other tasks until
// ctx ends.
func (s service) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	passed := make(chan struct{}) // the first pass has ended
	group.Go(func() error {
		err := s.health.serve(ctx, s.HealthAddress, s.metrics.registry)
		select { // any pod in the node's network can have the port
		case <-passed:
		case <-ctx.Done():
		}
		return err
	})
	group.Go(func() error {
		if s.first != nil {
			if err := s.first(ctx); err != nil {
				s.Log.Error("first pass ended with an error", "error", err)
			}
		}
		close(passed)
		if err := s.mirror.run(ctx); err != nil {
			return err
		}
		watch, err := s.kernel.Watch(ctx)
		if err != nil {
			return err
		}
		group.Go(watch.Wait) // a helper that is told nothing any more is started anew by the kubelet
		for _, task := range s.tasks {
			group.Go(func() error { task(ctx); return nil })
		}
		return loop(ctx, s.health, s.Log, s.step, s.mirror.changed, watch.Changed())
	})
	return group.Wait()
}

// errWaiting says that a record is missing which the CLI writes in its own time. The kernel is left as it is.
var errWaiting = errors.New("not written yet")

// Pauses of a loop.
const (
	// firstPause is the least time between two passes: what comes together, such as the kernel's notifications of
	// what a pass changed, is one more pass. It doubles up to passPause while one follows the other, so that a
	// quarrel with another program takes no core.
	firstPause = 5 * time.Millisecond
	passPause  = 50 * time.Millisecond
	// firstRetry and lastRetry bound the time after which a step that failed is tried again; it doubles.
	firstRetry = 250 * time.Millisecond
	lastRetry  = 8 * time.Second
)

// loop calls step at the start, whenever one of the channels delivers, and at every resync, until ctx ends.
// Errors of a step are logged, shown by the readiness probe of a node and the status of a gateway, and tried again
// soon.
func loop(ctx context.Context, h *liveness, log *slog.Logger, step func(context.Context) error, events ...<-chan struct{}) error {
	wake := merge(ctx, events...)
	timer, pause := time.NewTimer(0), time.NewTimer(0)
	defer timer.Stop()
	defer pause.Stop()
	retry, rest := firstRetry, firstPause
	ended := time.Now() // the last pass
	h.begin()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
		case <-timer.C:
		}
		rest = min(2*rest, passPause)
		if time.Since(ended) > passPause {
			rest = firstPause
		}
		err := step(ctx)
		next := resync
		switch {
		case err == nil, errors.Is(err, context.Canceled):
		case errors.Is(err, errWaiting):
			log.Info("nothing to do yet", "reason", err)
		default:
			next = retry
			log.Error("pass ended with an error; it is tried again", "error", err, "in", next.String())
		}
		if next == resync {
			retry = firstRetry
		} else {
			retry = min(2*retry, lastRetry)
		}
		h.set(err)
		timer.Reset(next)
		ended = time.Now()
		pause.Reset(rest)
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
				case <-c:
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
