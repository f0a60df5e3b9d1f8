// Package commands is liqoctl's command line: one file a command, each from flags to options to the call that
// does the work. What is done is not in scope: see internal/peering, internal/helper, internal/image and ipam.
package commands

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
)

// Run executes a command line, without the program's name, and returns the process's exit code. Errors are
// written to env.Err. When ctx ends, so does the command.
func Run(ctx context.Context, env *Env, args []string) int {
	env.start(false)
	root := New(env)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		env.progress.stop()
		return ExitOK
	}
	code, hint := exitCode(ctx, err), hintOf(err)
	if hint == "" && code == ExitUsage {
		hint = cmd.CommandPath() + " --help"
	}
	env.progress.fail(withoutRequests(err), hint)
	return code
}

// New returns the tree of commands.
func New(env *Env) *cobra.Command {
	var config string
	var verbose bool
	root := group("liqoctl", "Join the networks of Kubernetes clusters", `liqoctl joins the networks of Kubernetes clusters: every pod of one reaches every pod of the other,
encrypted, whatever CNI each runs, also where both use the same addresses.

Flags that are always the same can be set in a configuration file, by their names, or in the environment, as in
LIQOCTL_REMOTE_CONTEXT. The command line counts more than the environment, and that more than the file.

Exit codes: 0 done, 1 failure, 2 usage, 3 unhealthy, 4 no address free, 130 interrupted.`)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &UsageError{Err: plainBool(err)} })
	root.PersistentFlags().StringVar(&config, "config", "", "configuration `FILE` (default: $XDG_CONFIG_HOME/liqoctl/config.yaml)")
	root.PersistentFlags().BoolVarP(&verbose, "verbose", "v", false, "log what is done to standard error")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		set, err := loadSettings(env, config)
		if err != nil {
			return err
		}
		if err := set.apply(cmd.Flags()); err != nil {
			return err
		}
		env.start(verbose)
		return nil
	}
	root.AddCommand(newNetwork(env), newIPAM(env), newImage(env), newVersion(env), newHelper(env))
	return root
}

// group returns a command that only holds others: alone it prints its help, with an argument that names none
// of them it is a usage error.
func group(name, short, long string) *cobra.Command {
	return &cobra.Command{
		Use:   name,
		Short: short,
		Long:  long,
		Args:  cobra.ArbitraryArgs,
		// How many letters a mistyped command may be off and still be guessed.
		SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			err := usagef("%s: no such command: %s", cmd.CommandPath(), args[0])
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				err.hint = cmd.CommandPath() + " " + near[0]
			}
			return err
		},
	}
}

// arguments refuses a number of arguments other than that of the names. Names in brackets may be left out.
func arguments(names ...string) cobra.PositionalArgs {
	least := 0
	for _, name := range names {
		if !strings.HasPrefix(name, "[") {
			least++
		}
	}
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef("%s: no %s given", cmd.CommandPath(), names[len(args)])
		case len(args) > len(names):
			return usagef("%s: one argument too many: %s", cmd.CommandPath(), args[len(names)])
		}
		return nil
	}
}
