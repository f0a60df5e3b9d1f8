package commands

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"liqonet.io/liqonet/internal/steps"
)

// operation is what a network command does once its flags are options. It tells the reporter how it goes on.
type operation[O, R any] func(context.Context, O, steps.Reporter) (R, error)

// perform runs an operation, prints its result and returns it; text writes it for people.
func perform[O, R any](ctx context.Context, env *Env, do operation[O, R], options O, output format, text func(R) string) (R, error) {
	result, err := do(ctx, options, env.progress)
	if err != nil {
		return result, err
	}
	env.progress.stop()
	return result, answer(env, output, result, text)
}

// answer prints a result.
func answer[R any](env *Env, output format, result R, text func(R) string) error {
	if output.structured() {
		return output.encode(env.Out, result)
	}
	_, err := io.WriteString(env.Out, visible(text(result)))
	return err
}

// timeoutFlag adds the flag that bounds an operation, with the default that the timeout has; 0: steps.DefaultTimeout.
func timeoutFlag(flags *pflag.FlagSet, timeout *time.Duration) {
	*timeout = cmp.Or(*timeout, steps.DefaultTimeout)
	addFlag(flags, timeout, "timeout", "DURATION", "time limit of the whole command", positiveDuration)
}

// sizedTimeoutFlag is timeoutFlag for operations that wait for every node.
func sizedTimeoutFlag(flags *pflag.FlagSet, timeout *time.Duration) {
	addFlag(flags, timeout, "timeout", "DURATION",
		fmt.Sprintf("time limit of the whole command (default: %s, and a second for every ten nodes of the larger cluster)", steps.DefaultTimeout), positiveDuration)
}

// action is what a command does to clusters, by options of type O and with a result of type R.
type action[O, R any] struct {
	do   operation[O, R]
	text func(R) string // writes the result for people
	// options are what the flags and the arguments ask for. timeout is theirs.
	options func(args []string) (O, error)
	timeout *time.Duration
	bySize  bool // the default of timeout depends on the number of nodes
	// Does what do does in a dry run; nil: the command changes nothing that a lock guards.
	plan    operation[O, steps.Plan]
	ask     func(O) string // what to ask before it is done; nil or "": nothing
	verdict func(R) error  // of a result that was printed; nil: a result is a success
	ignored []string       // flags of Liqo's liqoctl that change nothing here
}

// command completes a command: it adds the flags that all of them have, and has the action run.
func (a action[O, R]) command(env *Env, cmd *cobra.Command) *cobra.Command {
	var yes, dryRun bool
	output := formatText
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		env.locking.Holder = lockHolder(cmd)
		o, err := a.options(args)
		if err != nil {
			return err
		}
		if dryRun {
			_, err := perform(cmd.Context(), env, dryly(a.plan), o, output, describeDryRun)
			return err
		}
		if a.ask != nil && a.ask(o) != "" {
			if err := env.confirm(cmd.Context(), yes, a.ask(o)); err != nil {
				return err
			}
		}
		result, err := perform(cmd.Context(), env, a.do, o, output, a.text)
		if err != nil || a.verdict == nil {
			return err
		}
		return a.verdict(result)
	}
	if a.ask != nil {
		boolFlag(cmd.Flags(), &yes, "yes,y", "do not ask for confirmation (alias --skip-confirm)")
	}
	if a.plan != nil {
		addDryRunFlag(cmd, &dryRun)
		lockFlags(cmd, &env.locking)
	}
	if a.bySize {
		sizedTimeoutFlag(cmd.Flags(), a.timeout)
	} else {
		timeoutFlag(cmd.Flags(), a.timeout)
	}
	upstreamFlags(cmd, a.ignored...)
	outputFlag(cmd, &output)
	return cmd
}
