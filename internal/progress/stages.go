// Package progress has what all operations of the command line have in common: stages with their times and time limits,
// the Reporter to which they are reported, and errors of the input and of requests. What an operation does is not in
// scope.
package progress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/seconds"
)

// Stages of the operations, as named in reports, results and errors.
const (
	StageReach     = "reach"
	StageDiscover  = "discover"
	StageCompare   = "compare"
	StageInstall   = "install"
	StageNodes     = "nodes"
	StageTunnel    = "tunnel"
	StageProof     = "verify"
	StageWithdraw  = "remove"
	StageClean     = "clean"
	StageUninstall = "uninstall"
	StageAddress   = "address"
	StageGateway   = "gateway"
	StageObjects   = "objects"
	StageKeys      = "keys"
	StageDirect    = "direct"
)

// StageTime is the duration of a stage.
type StageTime struct {
	Name string           `json:"name"`
	Took seconds.Duration `json:"tookSeconds"`
}

// Unstaged is an error of which the stage tells users nothing.
type Unstaged interface {
	error
	Unstaged()
}

// StageError has the stage in which an operation failed, and the cause.
type StageError struct {
	Stage string
	Err   error
	hint  string
}

func (e *StageError) Error() string {
	if _, ok := errors.AsType[*kube.ReachError](e.Err); ok && e.Stage == StageReach {
		return e.Err.Error() // which contains this information
	}
	if _, ok := errors.AsType[Unstaged](e.Err); ok {
		return e.Err.Error()
	}
	return e.Stage + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *StageError) Unwrap() error { return e.Err }

// Hint returns the hint of the cause, else that of the stage; "" if there is none.
func (e *StageError) Hint() string {
	advice := hint.Of(e.Err)
	if reach, ok := errors.AsType[*kube.ReachError](e.Err); ok && e.Stage != StageReach && advice == reach.Hint() {
		advice = "" // it was reachable before
	}
	if advice != "" {
		return advice
	}
	if kube.Lost(e.Err) {
		return "run this again when the API server answers"
	}
	if over, ok := errors.AsType[*timeoutError](e.Err); ok && e.hint == "" {
		return over.advice()
	}
	return e.hint
}

// Stages runs the stages of one operation and records their durations.
type Stages struct {
	Reporter Reporter
	Times    []StageTime
}

// Step is the work of a stage. It returns a short description of its result.
type Step struct {
	Stage string
	Hint  string // the hint for errors that have none
	Do    func(context.Context) (string, error)
}

// Run runs stages until one fails.
func (s *Stages) Run(ctx context.Context, steps ...Step) error {
	for _, step := range steps {
		s.Reporter.Stage(step.Stage)
		start := time.Now()
		detail, err := step.Do(ctx)
		took := time.Since(start)
		if err != nil {
			return &StageError{Stage: step.Stage, Err: withTimeout(ctx, err), hint: step.Hint}
		}
		s.Times = append(s.Times, StageTime{Name: step.Stage, Took: seconds.Duration(took)})
		s.Reporter.Done(step.Stage, detail, took)
	}
	return nil
}

// Within limits the duration of an operation. When the time is over, the cause of the context contains the flag that
// set the limit. A duration of zero means no limit.
func Within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return WithinOf(ctx, time.Now(), timeout)
}

// WithinOf limits the duration of an operation that began at start.
func WithinOf(ctx context.Context, start time.Time, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithDeadlineCause(ctx, start.Add(timeout), &timeoutError{timeout})
}

// DefaultTimeout is the default time limit of an operation. Most of it is for image pulls and load balancers.
const DefaultTimeout = 2 * time.Minute

// TimeLimit returns the time limit of an operation that waits for every node of a cluster: the user's or, if that is 0,
// DefaultTimeout and one more second per ten nodes.
func TimeLimit(timeout time.Duration, nodes int) time.Duration {
	return cmp.Or(timeout, DefaultTimeout+time.Duration(nodes/10)*time.Second)
}

// timeoutError is the cause of a context whose time limit is over.
type timeoutError struct{ timeout time.Duration }

func (e *timeoutError) Error() string {
	return fmt.Sprintf("not done within %s (--timeout)", e.timeout)
}

// advice suggests a longer limit. It is used if the cause has no hint of its own.
func (e *timeoutError) advice() string { return "give it more time with --timeout" }

// withTimeout adds the time limit to an error caused by it, unless the error contains it already.
func withTimeout(ctx context.Context, err error) error {
	over, ok := errors.AsType[*timeoutError](context.Cause(ctx))
	if said, already := errors.AsType[*timeoutError](err); !ok || already && said == over {
		return err
	}
	return fmt.Errorf("%w: %w", over, err)
}

// Is makes the error match context.DeadlineExceeded.
func (e *timeoutError) Is(target error) bool { return errors.Is(target, context.DeadlineExceeded) }

// Afterwards returns the context in which a failed operation rolls back its changes, although its own time may be over.
// It ends after three minutes: deleting a namespace takes some ten seconds, an API server may be unavailable at first,
// and a kubelet that waits for a registry terminates no pod until the wait is over. A second signal ends it as well.
func Afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	const most = 3 * time.Minute
	return context.WithTimeoutCause(context.WithoutCancel(ctx), most, &timeoutError{most})
}

// Altering returns the changes that modified the cluster.
func Altering(changes []kube.Change) []kube.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c kube.Change) bool { return !c.Alters() })
}
