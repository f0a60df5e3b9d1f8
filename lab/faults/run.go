package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"liqonet.io/liqonet/lab/faults/flows"
)

// Durations of a run: packets flow for lead before the fault, and for settled after status is healthy again.
const (
	lead     = 2 * time.Second
	settled  = 5 * time.Second
	patience = 10 * time.Minute
)

// Sample is the result of one run of a fault: the worst of all paths.
type Sample struct {
	Fault string    `json:"fault"`
	At    time.Time `json:"at"`
	flows.Result
	// Turned is when status left "healthy" after the beginning of the fault, in either cluster; 0: it never did.
	Turned time.Duration `json:"turnedNanoseconds"`
	// Healed is when both clusters were healthy again for good.
	Healed time.Duration `json:"healedNanoseconds"`
}

// Run causes the fault once, or on each node, and undoes it. The sample has the worst values of all nodes.
func (b *Bed) Run(ctx context.Context, f Fault) (Sample, error) {
	s := Sample{Fault: f.Name, At: time.Now().UTC().Truncate(time.Second)}
	steps := 1
	if f.EachNode {
		steps = b.Nodes
	}
	err := b.set(ctx, f.Settings)
	for range steps {
		if err == nil {
			err = b.measure(ctx, f, &s)
		}
	}
	if err == nil {
		err = b.set(ctx, f.Reset)
	}
	if err != nil {
		return s, fmt.Errorf("fault %s: %w", f.Name, err)
	}
	return s, nil
}

// set changes settings of the peering.
func (b *Bed) set(ctx context.Context, flags []string) error {
	if len(flags) == 0 {
		return nil
	}
	if err := b.connect(ctx, append([]string{"--update"}, flags...)...); err != nil {
		return err
	}
	return b.await(ctx)
}

// measure causes the fault, and adds the result to the sample.
func (b *Bed) measure(ctx context.Context, f Fault, s *Sample) (err error) {
	var spared []string
	if f.Spared != nil {
		if spared, err = f.Spared(ctx, b); err != nil {
			return err
		}
	}
	probers, err := b.probers(ctx, spared...)
	if err != nil {
		return err
	}
	states, stop := b.recordStates(ctx)
	defer func() { err = errors.Join(err, stop()) }()
	if _, err := states.healthySince(ctx, time.Time{}, 0); err != nil {
		return err
	}
	for _, p := range probers {
		if err := p.begin(ctx, b.Lab); err != nil {
			return err
		}
	}
	began, undo, err := b.cause(ctx, f)
	if err == nil {
		var healed time.Time
		healed, err = states.healthySince(ctx, began, settled)
		s.Healed, s.Turned = max(s.Healed, healed.Sub(began)), max(s.Turned, states.turned(began))
	}
	err = errors.Join(err, b.end(context.WithoutCancel(ctx), probers, s))
	if undo != nil {
		err = errors.Join(err, undo(context.WithoutCancel(ctx)))
	}
	if err != nil {
		return err
	}
	return b.await(ctx)
}

// end ends all measurements in parallel: each waits two seconds for answers.
func (b *Bed) end(ctx context.Context, probers []prober, s *Sample) error {
	results := make([][]flows.Result, len(probers))
	var all errgroup.Group
	for i, p := range probers {
		all.Go(func() (err error) {
			results[i], err = p.end(ctx, b.Lab)
			return err
		})
	}
	err := all.Wait()
	for _, r := range slices.Concat(results...) {
		s.worst(r)
	}
	return err
}

// cause lets packets flow for a moment, and begins the fault.
func (b *Bed) cause(ctx context.Context, f Fault) (began time.Time, undo func(context.Context) error, err error) {
	if err := pause(ctx, lead); err != nil {
		return began, nil, err
	}
	began = time.Now()
	undo, err = f.Begin(ctx, b)
	return began, undo, err
}

// worst merges the result of a path, each value if it is worse.
func (s *Sample) worst(r flows.Result) {
	if r.Lost > s.Lost {
		s.Losses = r.Losses
	}
	s.Sent, s.Lost, s.Gone, s.Stalled = max(s.Sent, r.Sent), max(s.Lost, r.Lost), max(s.Gone, r.Gone), max(s.Stalled, r.Stalled)
	s.Broken, s.Failed, s.Tried = s.Broken+r.Broken, s.Failed+r.Failed, s.Tried+r.Tried
	s.Without, s.Pause = max(s.Without, r.Without), max(s.Pause, r.Pause)
}

// await waits until all nodes' probes run and the peering is healthy, so that each fault begins in the same state.
func (b *Bed) await(ctx context.Context) error {
	for cluster := range b.peers {
		if err := b.kubectl(ctx, cluster, "rollout", "status", "daemonset/probe", "--timeout=10m"); err != nil {
			return err
		}
		if _, err := b.liqoctl(ctx, "network", "status", "--context", cluster, "--wait", "--timeout", "10m"); err != nil {
			return err
		}
	}
	return nil
}

// states are the states of each cluster, with their times.
type states struct {
	mu      sync.Mutex
	history map[string][]state
}

type state struct {
	healthy bool
	at      time.Time
}

// recordStates records the states that status reports, until stop is called.
func (b *Bed) recordStates(ctx context.Context) (*states, func() error) {
	s := &states{history: map[string][]state{}}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, len(b.peers))
	for cluster := range b.peers {
		go func() {
			ended <- b.watch(ctx, cluster, func(text string, at time.Time) { s.note(cluster, state{text == "healthy", at}) })
		}()
	}
	return s, func() error {
		cancel()
		var err error
		for range b.peers {
			err = errors.Join(err, <-ended)
		}
		return err
	}
}

func (s *states) note(cluster string, now state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	history := s.history[cluster]
	if n := len(history); n > 0 && history[n-1].healthy == now.healthy {
		return
	}
	s.history[cluster] = append(history, now)
}

// turned is the time from a start until a cluster was not healthy; 0: all stayed healthy.
func (s *states) turned(from time.Time) (after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, history := range s.history {
		for _, now := range history {
			if d := now.at.Sub(from); !now.healthy && d > 0 && (after == 0 || d < after) {
				after = d
			}
		}
	}
	return after
}

// healthySince waits until both clusters have been healthy for a time after from, and returns the beginning.
func (s *states) healthySince(ctx context.Context, from time.Time, during time.Duration) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not healthy again within %s", patience))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for {
		since, ok := s.healthy()
		if since.Before(from) {
			since = from
		}
		if ok && time.Since(since) >= during && time.Since(began) >= during {
			return since, nil
		}
		select {
		case <-ctx.Done():
			return since, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// healthy reports whether all clusters are healthy, and since when.
func (s *states) healthy() (since time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, history := range s.history {
		last := history[len(history)-1]
		if !last.healthy {
			return since, false
		}
		if last.at.After(since) {
			since = last.at
		}
	}
	return since, len(s.history) == 2
}
