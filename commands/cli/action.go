package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/progress"
)

// Operation implements a network command. It gets options instead of flags, and reports its progress.
type Operation[O, R any] func(context.Context, O, progress.Reporter) (R, error)

// perform runs an operation, prints its result and returns it; text writes it for people.
func perform[O, R any](ctx context.Context, env *Env, do Operation[O, R], options O, output ui.Format, text func(*strings.Builder, R)) (R, error) {
	result, err := do(ctx, options, env.Progress)
	if err != nil {
		return result, err
	}
	env.Progress.Stop()
	return result, Answer(env, output, result, text)
}

// Answer prints a result; text writes it for people.
func Answer[R any](env *Env, output ui.Format, result R, text func(*strings.Builder, R)) error {
	if output.Structured() {
		return output.Encode(env.Out, result)
	}
	var b strings.Builder
	text(&b, result)
	_, err := io.WriteString(env.Out, ui.Visible(b.String()))
	return err
}

// TimeoutFlag adds the flag that bounds an operation, with the default that the timeout has; 0: steps.DefaultTimeout.
func TimeoutFlag(flags *pflag.FlagSet, timeout *time.Duration) {
	*timeout = cmp.Or(*timeout, progress.DefaultTimeout)
	ui.AddFlag(flags, timeout, "timeout", "DURATION", "time limit of the whole command", ui.PositiveDuration)
}

// sizedTimeoutFlag is timeoutFlag for operations that wait for every node.
func sizedTimeoutFlag(flags *pflag.FlagSet, timeout *time.Duration) {
	ui.AddFlag(flags, timeout, "timeout", "DURATION",
		fmt.Sprintf("time limit of the whole command (default: %s, and a second for every ten nodes of the larger cluster)", progress.DefaultTimeout), ui.PositiveDuration)
}

// Action is what a command does to clusters, by options of type O and with a result of type R.
type Action[O, R any] struct {
	Do   Operation[O, R]
	Text func(*strings.Builder, R) // writes the result for people
	Wide func(*strings.Builder, R) // the same with -o wide; nil: there is no wide answer
	// options are what the flags and the arguments ask for. timeout is theirs.
	Options func(args []string) (O, error)
	Timeout *time.Duration
	BySize  bool // the default of timeout depends on the number of nodes
	// Does what do does in a dry run; nil: the command changes nothing that a lock guards.
	Plan    Operation[O, plan.Plan]
	Ask     func(O) string // what to ask before it is done; nil or "": nothing
	Verdict func(R) error  // of a result that was printed; nil: a result is a success
	Ignored []string       // flags of Liqo's liqoctl that change nothing here
}

// RunFlags are the flags that select how an action is run and printed.
type RunFlags struct {
	Yes, DryRun bool
	Output      ui.Format
}

// Command completes a command: it adds the flags that all of them have, and has the action run.
func (a Action[O, R]) Command(env *Env, cmd *cobra.Command) *cobra.Command {
	flags := a.Flags(env, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.Run(env, cmd, *flags, args) }
	return cmd
}

// Flags adds the flags that all actions have.
func (a Action[O, R]) Flags(env *Env, cmd *cobra.Command) *RunFlags {
	f := &RunFlags{Output: ui.FormatText}
	if a.Ask != nil {
		ui.BoolFlag(cmd.Flags(), &f.Yes, "yes,y", "do not ask for confirmation (alias --skip-confirm)")
	}
	if a.Plan != nil {
		AddDryRunFlag(cmd, &f.DryRun)
		lockFlags(cmd, &env.locking)
	}
	if a.BySize {
		sizedTimeoutFlag(cmd.Flags(), a.Timeout)
	} else {
		TimeoutFlag(cmd.Flags(), a.Timeout)
	}
	upstreamFlags(cmd, a.Ignored...)
	if a.Plan != nil || a.Wide != nil {
		ui.OutputFlag(cmd, &f.Output, ui.FormatWide)
	} else {
		ui.OutputFlag(cmd, &f.Output)
	}
	return f
}

// Run runs the action of a command, and prints its result or its plan.
func (a Action[O, R]) Run(env *Env, cmd *cobra.Command, f RunFlags, args []string) error {
	env.locking.Holder = lockHolder(cmd)
	o, err := a.Options(args)
	if err != nil {
		return err
	}
	if f.DryRun {
		_, err := perform(cmd.Context(), env, dryly(a.Plan), o, f.Output, func(b *strings.Builder, p PlanAnswer) {
			b.WriteString(DescribeDryRun(p, f.Output == ui.FormatWide))
		})
		return err
	}
	if a.Ask != nil && a.Ask(o) != "" {
		if err := env.confirm(cmd.Context(), f.Yes, a.Ask(o)); err != nil {
			return err
		}
	}
	text := a.Text
	switch {
	case f.Output == ui.FormatWide && a.Wide != nil:
		text = a.Wide
	case f.Output == ui.FormatWide:
		return Usagef("-o wide: %s has it with --dry-run alone", cmd.CommandPath())
	}
	result, err := perform(cmd.Context(), env, a.Do, o, f.Output, text)
	if err != nil || a.Verdict == nil {
		return err
	}
	return a.Verdict(result)
}
