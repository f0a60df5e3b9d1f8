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
	"log/slog"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"liqonet.io/liqonet/internal/helper/cache"
	"liqonet.io/liqonet/internal/helper/liveness"
	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/netops/kernel"
)

// Env is the environment of every helper.
type Env struct {
	Client kubernetes.Interface
	// Dialed returns the addresses of the client's recent connections; nil: the addresses of API servers are unknown.
	Dialed    func() []netip.Addr `json:"-"` // tests encode helpers without what a process makes itself
	Namespace string
	Log       *slog.Logger
	// HealthAddress is the address of probes and metrics, such as "127.0.0.1:6093".
	HealthAddress string
}

// APITimeout is that of one request to the API server.
const APITimeout = 10 * time.Second

// APIServers returns the addresses to which the client has connected lately.
func (e Env) APIServers() []netip.Addr {
	if e.Dialed == nil {
		return nil
	}
	return e.Dialed()
}

// NewEvents returns the writer of a helper's events, which begin with names.
func (e Env) NewEvents(component, host, names string, burst int, pause time.Duration) *publish.Events {
	return publish.NewEvents(publish.Source{
		Client: e.Client, Namespace: e.Namespace, Component: component, Host: host, Names: names, Log: e.Log,
	}, burst, pause)
}

// Resync is the interval of full passes without reported changes. It is longer if full passes would take more than
// 1/fullShare of the time, as other passes have to wait for them.
const (
	Resync    = 30 * time.Second
	Stuck     = 5 * Resync // after that time without a pass, a helper is not live
	fullShare = 200        // one part of so many
)

// Service has the parts of a helper.
type Service struct {
	Env
	Health  *liveness.Probes
	Objects *cache.Cache
	Metrics *Metrics
	Kernel  *kernel.Kernel
	First   func(context.Context) error // first pass, before the objects of others are read; nil: none
	Step    func(context.Context) error // one pass of the loop
	Tasks   []func(context.Context)     // run beside the loop
}

// Run makes the first pass, reads the objects that the helper watches, then runs its loop beside the other tasks until
// ctx ends.
func (s Service) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	passed := make(chan struct{}) // the first pass has ended
	group.Go(func() error {
		err := s.Health.Serve(ctx, s.HealthAddress, s.Metrics.Registry)
		select { // any pod in the node's network can occupy the port
		case <-passed:
		case <-ctx.Done():
		}
		return err
	})
	group.Go(func() error {
		if s.First != nil {
			if err := s.First(ctx); err != nil {
				s.Log.Error("first pass ended with an error", "error", err)
			}
		}
		close(passed)
		if err := s.Objects.Run(ctx); err != nil {
			return err
		}
		watch, err := s.Kernel.Watch(ctx, s.Objects.Changed)
		if err != nil {
			return err
		}
		group.Go(watch.Wait) // without notifications, the helper ends and the kubelet restarts it
		for _, task := range s.Tasks {
			group.Go(func() error { task(ctx); return nil })
		}
		return Loop(ctx, s.Health, s.Log, s.Step, s.Objects.Changed)
	})
	return group.Wait()
}

// ErrWaiting means that a record does not exist yet which the CLI writes later. The kernel stays unchanged.
var ErrWaiting = errors.New("not written yet")

// Pauses of a loop.
const (
	// firstPause is the minimum time between two passes: simultaneous events, such as the kernel's notifications of a
	// pass's own changes, cause one more pass. It doubles up to passPause while passes follow each other, so that a
	// conflict with another program does not occupy a core.
	firstPause = 5 * time.Millisecond
	passPause  = 50 * time.Millisecond
	// FirstRetry and LastRetry bound the retry interval of a failed step, which doubles.
	FirstRetry = 250 * time.Millisecond
	LastRetry  = 8 * time.Second
)

// Loop calls step at the start, whenever the channel delivers, and at every Resync, until ctx ends. Errors of a
// step are logged, shown by the readiness probe of a node and the status of a gateway, and retried soon.
func Loop(ctx context.Context, h *liveness.Probes, log *slog.Logger, step func(context.Context) error, changed <-chan struct{}) error {
	timer, pause := time.After(0), time.After(0)
	retry, rest := FirstRetry, firstPause
	ended := time.Now() // last pass
	h.Begin()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-pause:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-timer:
		}
		rest = min(2*rest, passPause)
		if time.Since(ended) > passPause {
			rest = firstPause
		}
		err := step(ctx)
		next, again := Resync, FirstRetry
		switch {
		case err == nil, errors.Is(err, context.Canceled):
		case errors.Is(err, ErrWaiting):
			log.Info("nothing to do yet", "reason", err)
		default:
			next, again = retry, min(2*retry, LastRetry)
			log.Error("pass ended with an error; it is tried again", "error", err, "in", next.String())
		}
		retry = again
		h.Set(err)
		timer = time.After(next)
		ended = time.Now()
		pause = time.After(rest)
	}
}
