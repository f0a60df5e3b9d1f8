//go:build linux

package helper

import (
	"fmt"
	"log/slog"
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/kernel"
	"liqonet.io/liqonet/netops/nft"
)

// describeEvery is the interval at which the whole state of the kernel is logged, besides each change. It is for fault
// reports: only the helper can read the kernel of a gateway.
const describeEvery = 24 * time.Hour

// Reconciler reconciles the kernel with a desired state. One goroutine uses it.
type Reconciler struct {
	Kernel  *kernel.Kernel
	Metrics *Metrics
	// Event writes an event with a warning about the object of the helper.
	Event func(reason, message string)
	// Drift counts external changes of liqonet's kernel objects, which this helper restores.
	Drift records.Drift
	// Untranslated means that connections may have begun without the rules that translate their sources. The caller
	// resets it.
	Untranslated bool
	// Forward are the foreign chains that forwarded packets pass, as of the last pass.
	Forward []nft.ForwardChain

	log *slog.Logger
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
}

// NewReconciler returns a Reconciler that has not read the kernel yet, and writes no events.
func NewReconciler(k *kernel.Kernel, log *slog.Logger, m *Metrics) Reconciler {
	return Reconciler{Kernel: k, log: log, Metrics: m, Event: func(string, string) {}}
}

// Pass applies the differences from the desired state. Objects that need a link that does not exist yet wait for a
// later pass.
func (r *Reconciler) Pass(want netops.State) error {
	r.Metrics.passes.Inc()
	r.complete = time.Time{}
	r.observed, _ = r.Kernel.Changes()
	begin := time.Now()
	defer func() { r.Metrics.duration.Observe(time.Since(begin).Seconds()) }()
	have, err := r.Kernel.Observe()
	if err != nil {
		return fmt.Errorf("observe kernel: %w", err)
	}
	r.Forward = have.ForwardChains
	all := len(want.Links)
	want = want.Reachable(have)
	if plan := netops.Diff(have, want); !plan.Empty() {
		text := Abridged(plan)
		// The beginning.
		r.log.Info("kernel differs from the desired state", "steps", len(plan.Steps), "plan", fmt.Sprintf("%.600s", text))
		r.log.Debug("kernel is changed", "wholePlan", text)
		r.Metrics.changes.Inc()
		r.Untranslated = r.Untranslated || netops.SourcesDiffer(have.Firewall, want.Firewall)
		if r.reached != nil {
			r.AddDrift(drifted(have, r.reached())...)
		}
		r.reached = nil
		if err := r.Kernel.Apply(plan); err != nil {
			return err
		}
	} else if time.Since(r.described) > describeEvery {
		r.log.Info("kernel state", "state", Abridged(netops.Diff(netops.State{}, want))) // there is no difference
		r.described = time.Now()
	}
	r.reached = func() netops.State { return want }
	if len(want.Links) == all {
		r.complete, r.took = begin, time.Since(begin)
	}
	return nil
}

// Advance applies a plan that leads from the state of the last pass to another one, without reading the kernel.
func (r *Reconciler) Advance(plan netops.Plan, state func() netops.State) error {
	r.Metrics.passes.Inc()
	if !plan.Empty() {
		r.Metrics.changes.Inc()
	}
	if err := r.Kernel.Apply(plan); err != nil {
		r.complete, r.reached = time.Time{}, nil
		return err
	}
	r.reached = state
	return nil
}

// ForgetReached makes the next pass not count differences as drift: the caller has removed objects itself.
func (r *Reconciler) ForgetReached() { r.reached = nil }

// maxListed bounds the steps of a plan in a log line. Routes come last, and a gateway can have one for each pod.
const maxListed = 300

// Abridged returns the text of a plan without most of its steps.
func Abridged(p netops.Plan) string {
	listed := p.Steps[:min(maxListed, len(p.Steps))]
	return fmt.Sprintf("%s%d of %d steps", netops.Plan{Steps: listed}, len(listed), len(p.Steps))
}

// Undisturbed reports whether the kernel has not changed since the last pass, according to notifications. At every
// Resync it is read anyway.
func (r *Reconciler) Undisturbed() bool {
	changes, watched := r.Kernel.Changes()
	return watched && changes == r.observed && time.Since(r.complete) < max(Resync, fullShare*r.took)
}
