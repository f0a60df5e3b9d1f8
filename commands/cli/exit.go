package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/ipam"
)

// Exit codes. They are part of the interface: see docs/cli.
const (
	ExitOK      = 0
	ExitFailure = 1 // the operation failed
	ExitUsage   = 2 // invalid command line or configuration; nothing was done
	// `network status`: a peering does not work, or its clusters disagree; `network reset`: state remains; `network
	// test`, `network diagnose`: a check failed; `network trace`: packets do not cross; `network connect`, `network
	// init`: a node is not verified, all others are.
	ExitUnhealthy   = 3
	ExitNoneFree    = 4   // no address range or address is free for the request
	ExitInterrupted = 130 // ended by a signal: 128 + SIGINT
)

// UsageError reports an invalid command line or configuration.
type UsageError struct {
	Err    error
	Advice string // "": that of Err
}

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// Hint returns the advice.
func (e *UsageError) Hint() string { return cmp.Or(e.Advice, hint.Of(e.Err)) }

// Usagef makes a usage error without a hint: the command's help is named later.
func Usagef(format string, args ...any) *UsageError {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// verdict is an error after a printed result: the command completed, and found a fault.
type verdict string

func (v verdict) Error() string { return string(v) }

// Unless returns the verdict, or nil if all is well.
func (v verdict) Unless(well bool) error {
	if well {
		return nil
	}
	return v
}

// The verdicts.
const (
	ErrUnhealthy  verdict = "not all peerings are healthy"
	ErrDisagree   verdict = "the clusters disagree about their peering"
	ErrUnverified verdict = "not all nodes are verified"
	ErrRemains    verdict = "liqonet state remains"
	ErrPaths      verdict = "not all checks passed"
	ErrDiagnosed  verdict = "faults were found"
	ErrTraced     verdict = "packets do not cross"
)

// ErrInterrupted ends what only a signal ends.
var ErrInterrupted = errors.New("interrupted")

// ExitCode maps the error of a command to the code of the process. ctx is the process's own: only a signal
// ends it.
func ExitCode(ctx context.Context, err error) int {
	switch {
	case err == nil:
		return ExitOK
	case ctx.Err() != nil:
		return ExitInterrupted
	case errors.As(err, new(*UsageError)), errors.As(err, new(*progress.InputError)):
		return ExitUsage
	case errors.As(err, new(verdict)):
		return ExitUnhealthy
	case errors.Is(err, ipam.ErrNoneFree):
		return ExitNoneFree
	}
	return ExitFailure
}
