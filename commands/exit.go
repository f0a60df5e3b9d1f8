package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/steps"
	"liqonet.io/liqonet/ipam"
)

// Exit codes. They are part of the interface: see docs/cli.
const (
	ExitOK          = 0
	ExitFailure     = 1   // what was asked for did not happen
	ExitUsage       = 2   // the command line or the configuration makes no sense; nothing was done
	ExitUnhealthy   = 3   // `network status`: a peering does not work, or its clusters disagree; `ipam check`: reservations are not in order; `network verify-clean`: state remains; `network test`, `network diagnose`: a check failed; `network connect`, `network init`: a node is not verified, all others are
	ExitNoneFree    = 4   // no address range or address is free for what was asked
	ExitInterrupted = 130 // ended by a signal: 128 + SIGINT
)

// UsageError is a command line or a configuration that makes no sense.
type UsageError struct {
	Err  error
	hint string
}

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// Hint returns the advice: its own, else the cause's.
func (e *UsageError) Hint() string { return cmp.Or(e.hint, hint.Of(e.Err)) }

// usagef makes a usage error without a hint: the command's help is named later.
func usagef(format string, args ...any) *UsageError {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

var (
	// errUnhealthy says that the answer, which was printed, is that something does not work.
	errUnhealthy = errors.New("not all peerings are healthy")
	// errDisagree says that the answer, which was printed, is that two clusters state different things of their peering.
	errDisagree = errors.New("the clusters disagree about their peering")
	// errUnverified says that the answer, which was printed, names nodes that do not take part.
	errUnverified = errors.New("not all nodes are verified")
	// errInterrupted ends what only a signal ends.
	errInterrupted = errors.New("interrupted")
)

// exitCode maps the error of a command to the code of the process. ctx is the process's own: only a signal
// ends it.
func exitCode(ctx context.Context, err error) int {
	var usage *UsageError
	var input *steps.InputError
	switch {
	case err == nil:
		return ExitOK
	case ctx.Err() != nil:
		return ExitInterrupted
	case errors.As(err, &usage), errors.As(err, &input):
		return ExitUsage
	case errors.Is(err, errUnhealthy), errors.Is(err, errDisagree), errors.Is(err, errDisorder), errors.Is(err, errRemains),
		errors.Is(err, errPaths), errors.Is(err, errDiagnosed), errors.Is(err, errTraced), errors.Is(err, errUnverified):
		return ExitUnhealthy
	case errors.Is(err, ipam.ErrNoneFree):
		return ExitNoneFree
	}
	return ExitFailure
}
