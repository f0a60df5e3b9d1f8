//go:build linux

// Package helper is the in-cluster mode of the binary: a loop on each node and one in each gateway that reconcile the
// kernel with the records, answer and send echoes, and report their observations.
//
// The kernel state outlives the helper: nothing is undone when a helper ends. An unreadable record affects its own
// peering only: its last valid version stays in use, and the helper serves all other peerings.
package helper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"liqonet.io/liqonet/internal/helper/cache"
	"liqonet.io/liqonet/internal/helper/liveness"
	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/internal/helper/wakeup"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/kernel"
	"liqonet.io/liqonet/netops/nft"
)

// Env is the environment of every helper.
type Env struct {
	Client    kubernetes.Interface
	Dialer    *Dialer // of the client; nil: the addresses of the API server are unknown
	Namespace string
	Log       *slog.Logger
	// HealthAddress is the address of probes and metrics, such as "127.0.0.1:6093".
	HealthAddress string
}

// apiTimeout is that of one request to the API server.
const apiTimeout = 10 * time.Second

// newEvents returns the writer of a helper's events, which begin with names.
func (e Env) newEvents(component, host, names string, burst int, pause time.Duration) *publish.Events {
	return publish.NewEvents(publish.Source{
		Client: e.Client, Namespace: e.Namespace, Component: component, Host: host, Names: names, Log: e.Log,
	}, burst, pause)
}

// resync is the interval of full passes without reported changes. It is longer if full passes would take more than
// 1/fullShare of the time, as other passes have to wait for them.
const (
	resync    = 30 * time.Second
	stuck     = 5 * resync // after that time without a pass, a helper is not live
	fullShare = 200        // one part of so many
)

// describeEvery is the interval at which the whole state of the kernel is logged, besides each change. It is for fault
// reports: only the helper can read the kernel of a gateway.
const describeEvery = 24 * time.Hour

// reconciler reconciles the kernel with a desired state. One goroutine uses it.
type reconciler struct {
	kernel  *kernel.Kernel
	log     *slog.Logger
	metrics *metrics
	drift   *drift
	// reached is the state in which the last pass left the kernel; nil: unknown.
	reached func() netops.State
	// complete is the time of the last pass that read the kernel and found or made the complete desired state, zero if
	// some of it is missing; observed is the number of kernel changes until then.
	complete time.Time
	observed uint64
	took     time.Duration // duration of that pass
	// described is when the kernel's state was last logged.
	described time.Time
	faults    []string // as last logged
	// untranslated means that connections may have begun without the rules that translate their sources.
	untranslated bool
	// forward are the foreign chains that forwarded packets pass, as of the last pass.
	forward []nft.ForwardChain
}

func newReconciler(k *kernel.Kernel, log *slog.Logger, m *metrics) reconciler {
	return reconciler{kernel: k, log: log, metrics: m, drift: newDrift(log, m)}
}

// pass applies the differences from the desired state. Objects that need a link that does not exist yet wait for a
// later pass.
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
		// The beginning.
		r.log.Info("kernel differs from what is wanted", "steps", len(plan.Steps), "plan", fmt.Sprintf("%.600s", text))
		r.log.Debug("kernel is changed", "wholePlan", text)
		r.metrics.changes.Inc()
		r.untranslated = r.untranslated || netops.SourcesDiffer(have.Firewall, want.Firewall)
		if r.reached != nil {
			r.drift.add(drifted(have, r.reached())...)
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

// maxListed bounds the steps of a plan in a log line. Routes come last, and a gateway can have one for each pod.
const maxListed = 300

func abridged(p netops.Plan) string {
	listed := p.Steps[:min(maxListed, len(p.Steps))]
	return fmt.Sprintf("%s%d of %d steps", netops.Plan{Steps: listed}, len(listed), len(p.Steps))
}

// undisturbed reports whether the kernel has not changed since the last pass, according to notifications. At every
// resync it is read anyway.
func (r *reconciler) undisturbed() bool {
	changes, watched := r.kernel.Changes()
	return watched && changes == r.observed && time.Since(r.complete) < max(resync, fullShare*r.took)
}

// service has the parts of a helper.
type service struct {
	Env
	health  *liveness.Probes
	objects *cache.Cache
	metrics *metrics
	kernel  *kernel.Kernel
	first   func(context.Context) error // first pass, before the objects of others are read; nil: none
	step    func(context.Context) error // one pass of the loop
	tasks   []func(context.Context)     // run beside the loop
}

// run makes the first pass, reads the objects that the helper watches, then runs its loop beside the other tasks until
// ctx ends.
func (s service) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	passed := make(chan struct{}) // the first pass has ended
	group.Go(func() error {
		err := s.health.Serve(ctx, s.HealthAddress, s.metrics.registry)
		select { // any pod in the node's network can occupy the port
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
		if err := s.objects.Run(ctx); err != nil {
			return err
		}
		watch, err := s.kernel.Watch(ctx)
		if err != nil {
			return err
		}
		group.Go(watch.Wait) // without notifications, the helper ends and the kubelet restarts it
		for _, task := range s.tasks {
			group.Go(func() error { task(ctx); return nil })
		}
		return loop(ctx, s.health, s.Log, s.step, s.objects.Changed, watch.Changed())
	})
	return group.Wait()
}

// errWaiting means that a record does not exist yet which the CLI writes later. The kernel stays unchanged.
var errWaiting = errors.New("not written yet")

// Pauses of a loop.
const (
	// firstPause is the minimum time between two passes: simultaneous events, such as the kernel's notifications of a
	// pass's own changes, cause one more pass. It doubles up to passPause while passes follow each other, so that a
	// conflict with another program does not occupy a core.
	firstPause = 5 * time.Millisecond
	passPause  = 50 * time.Millisecond
	// firstRetry and lastRetry bound the retry interval of a failed step, which doubles.
	firstRetry = 250 * time.Millisecond
	lastRetry  = 8 * time.Second
)

// loop calls step at the start, whenever one of the channels delivers, and at every resync, until ctx ends. Errors of a
// step are logged, shown by the readiness probe of a node and the status of a gateway, and retried soon.
func loop(ctx context.Context, h *liveness.Probes, log *slog.Logger, step func(context.Context) error, events ...<-chan struct{}) error {
	signals := wakeup.Merge(ctx, events...)
	timer, pause := time.NewTimer(0), time.NewTimer(0)
	defer timer.Stop()
	defer pause.Stop()
	retry, rest := firstRetry, firstPause
	ended := time.Now() // last pass
	h.Begin()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-signals:
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
		h.Set(err)
		timer.Reset(next)
		ended = time.Now()
		pause.Reset(rest)
	}
}
