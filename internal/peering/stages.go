package peering

import (
	"context"
	"errors"
	"fmt"
	"time"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
)

// Stages of the operations, as reports, results and errors name them.
const (
	stageReach       = "reach"
	stageDiscover    = "discover"
	stageCompare     = "compare"
	stageInstall     = "install"
	stageNodes       = "nodes"
	stageTranslation = "translation"
	stageTunnel      = "tunnel"
	stageProof       = "verify"
	stageWithdraw    = "remove"
	stageClean       = "clean"
	stageUninstall   = "uninstall"
	stageAddress     = "address"
	stageGateway     = "gateway"
	stageObjects     = "objects"
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
	if _, ok := errors.AsType[*cluster.ReachError](e.Err); ok && e.Stage == stageReach {
		return e.Err.Error() // which says so itself
	}
	return e.Stage + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *StageError) Unwrap() error { return e.Err }

// Hint returns what the cause advises, else what the stage does; "" if there is no advice.
func (e *StageError) Hint() string {
	advice := hint.Of(e.Err)
	if reach, ok := errors.AsType[*cluster.ReachError](e.Err); ok && e.Stage != stageReach && advice == reach.Hint() {
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

// stages runs the stages of one operation and keeps their times.
type stages struct {
	reporter Reporter
	times    []StageTime
}

// step is what a stage does. It returns in a few words what came out of it.
type step struct {
	stage string
	hint  string // the advice for failures that bring none of their own
	do    func(context.Context) (string, error)
}

// run runs stages until one fails.
func (s *stages) run(ctx context.Context, steps ...step) error {
	for _, step := range steps {
		s.reporter.Stage(step.stage)
		start := time.Now()
		detail, err := step.do(ctx)
		took := time.Since(start)
		if err != nil {
			return &StageError{Stage: step.stage, Err: timed(ctx, err), hint: step.hint}
		}
		s.times = append(s.times, StageTime{Name: step.stage, Took: took})
		s.reporter.Done(step.stage, detail, took)
	}
	return nil
}

// within bounds an operation. When the time is over, the cause of the context's end says which flag is to
// blame. The zero duration is no bound.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, &timeoutError{timeout})
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
