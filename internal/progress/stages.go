// Package progress has what all operations of the command line have in common: stages with their times and time limits,
// the Reporter to which they are reported, and errors of the input. What an operation does is not in scope.
package progress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
)

// Stages of the operations, as reports, results and errors name them.
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

// StageTime is how long a stage took.
type StageTime struct {
	Name string        `json:"name"`
	Took time.Duration `json:"tookNanoseconds"`
}

// StageError says in which stage an operation ended, and why.
type StageError struct {
	Stage string
	Err   error
	hint  string
}

func (e *StageError) Error() string {
	if _, ok := errors.AsType[*cluster.ReachError](e.Err); ok && e.Stage == StageReach {
		return e.Err.Error() // which says so itself
	}
	return e.Stage + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *StageError) Unwrap() error { return e.Err }

// Hint returns what the cause advises, else what the stage does; "" if there is no advice.
func (e *StageError) Hint() string {
	advice := hint.Of(e.Err)
	if reach, ok := errors.AsType[*cluster.ReachError](e.Err); ok && e.Stage != StageReach && advice == reach.Hint() {
		advice = "" // it was reached before
	}
	if advice != "" {
		return advice
	}
	if cluster.Lost(e.Err) {
		return "run this again when the API server answers"
	}
	if over, ok := errors.AsType[*timeoutError](e.Err); ok && e.hint == "" {
		return over.advice()
	}
	return e.hint
}

// Stages runs the stages of one operation and keeps their times.
type Stages struct {
	Reporter Reporter
	Times    []StageTime
}

// Step is what a stage does. It returns in a few words what came out of it.
type Step struct {
	Stage string
	Hint  string // the advice for failures that bring none of their own
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
			return &StageError{Stage: step.Stage, Err: timed(ctx, err), hint: step.Hint}
		}
		s.Times = append(s.Times, StageTime{Name: step.Stage, Took: took})
		s.Reporter.Done(step.Stage, detail, took)
	}
	return nil
}

// Within bounds an operation. When the time is over, the cause of the context's end says which flag is to
// blame. The zero duration is no bound.
func Within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return WithinOf(ctx, time.Now(), timeout)
}

// WithinOf bounds an operation that has begun at start.
func WithinOf(ctx context.Context, start time.Time, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithDeadlineCause(ctx, start.Add(timeout), &timeoutError{timeout})
}

// DefaultTimeout is the time limit of an operation unless the user sets another. Most of it is for images and load
// balancers.
const DefaultTimeout = 2 * time.Minute

// TimeLimit is the time limit of an operation that waits for every node of a cluster: the user's, else, if that is 0,
// DefaultTimeout and a second for every ten nodes.
func TimeLimit(timeout time.Duration, nodes int) time.Duration {
	return cmp.Or(timeout, DefaultTimeout+time.Duration(nodes/10)*time.Second)
}

// timeoutError is the cause of a context whose time is over.
type timeoutError struct{ timeout time.Duration }

func (e *timeoutError) Error() string {
	return fmt.Sprintf("not done within %s (--timeout)", e.timeout)
}

// advice says how to wait longer: for want of any better.
func (e *timeoutError) advice() string { return "give it more time with --timeout" }

// timed adds to an error that it came with the end of the operation's time, unless it says so already.
func timed(ctx context.Context, err error) error {
	over, ok := errors.AsType[*timeoutError](context.Cause(ctx))
	if said, already := errors.AsType[*timeoutError](err); !ok || already && said == over {
		return err
	}
	return fmt.Errorf("%w: %w", over, err)
}

// Is makes the error a deadline's.
func (e *timeoutError) Is(target error) bool { return errors.Is(target, context.DeadlineExceeded) }

// Afterwards is the context in which a failed operation removes what it has made, though its own time may be over. It
// ends after three minutes: namespaces take some ten seconds, an API server may have to come back first, and a kubelet
// that waits for a registry ends no pod until that is over. A second signal ends it, too.
func Afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	const most = 3 * time.Minute
	return context.WithTimeoutCause(context.WithoutCancel(ctx), most, &timeoutError{most})
}

// Altering returns the changes that left the cluster another one.
func Altering(changes []cluster.Change) []cluster.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c cluster.Change) bool { return !c.Alters() })
}
