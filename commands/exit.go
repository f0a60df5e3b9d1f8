package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/ipam"
)

// Exit codes. They are part of the interface: see docs/cli.
const (
	ExitOK          = 0
	ExitFailure     = 1   // what was asked for did not happen
	ExitUsage       = 2   // the command line or the configuration makes no sense; nothing was done
	ExitUnhealthy   = 3   // `network status`: a peering does not work, or its clusters disagree; `ipam check`: reservations are not in order; `network verify-clean`: state remains
	ExitNoneFree    = 4   // no address range or address is free for what was asked
	ExitInterrupted = 130 // ended by a signal: 128 + SIGINT
)

// Hinted is an error that knows what the user can do about it.
type Hinted interface {
	error
	// Hint is a command to run or a flag to use; "" when there is no advice after all.
	Hint() string
}

// UsageError is a command line or a configuration that makes no sense.
type UsageError struct {
	Err  error
	hint string
}

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// Hint implements Hinted. Without one of its own it is the cause's.
func (e *UsageError) Hint() string { return cmp.Or(e.hint, hintOf(e.Err)) }

// usagef makes a usage error without a hint: the command's help is named later.
func usagef(format string, args ...any) *UsageError {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// hintedError is an error with a hint that is more apt than the cause's own.
type hintedError struct {
	error
	hint string
}

func withHint(err error, hint string) error { return &hintedError{err, hint} }

func (e *hintedError) Unwrap() error { return e.error }

// Hint implements Hinted.
func (e *hintedError) Hint() string { return e.hint }

var (
	// errUnhealthy says that the answer, which was printed, is that something does not work.
	errUnhealthy = errors.New("not all peerings are healthy")
	// errDisagree says that the answer, which was printed, is that two clusters state different things of their peering.
	errDisagree = errors.New("the clusters disagree about their peering")
	// errInterrupted ends what only a signal ends.
	errInterrupted = errors.New("interrupted")
)

// exitCode maps the error of a command to the code of the process. ctx is the process's own: only a signal
// ends it.
func exitCode(ctx context.Context, err error) int {
	var usage *UsageError
	var input *peering.InputError
	switch {
	case err == nil:
		return ExitOK
	case ctx.Err() != nil:
		return ExitInterrupted
	case errors.As(err, &usage), errors.As(err, &input):
		return ExitUsage
	case errors.Is(err, errUnhealthy), errors.Is(err, errDisagree), errors.Is(err, errDisorder), errors.Is(err, errRemains):
		return ExitUnhealthy
	case errors.Is(err, ipam.ErrNoneFree):
		return ExitNoneFree
	}
	return ExitFailure
}

// hintOf returns the advice of the first error in err's tree that knows any.
func hintOf(err error) string {
	if hinted, ok := errors.AsType[Hinted](err); ok {
		return hinted.Hint()
	}
	return ""
}
