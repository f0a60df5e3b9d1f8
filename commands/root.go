// Package commands is liqoctl's command line: the tree of commands, the version, and how an error becomes an exit code.
// Its folders have the commands: each goes from flags to options to the call that does the work.
package commands

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/image"
	"liqonet.io/liqonet/commands/incluster"
	"liqonet.io/liqonet/commands/ipam"
	"liqonet.io/liqonet/commands/network"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/progress"
)

// Run executes a command line, without the program's name, and returns the process's exit code. Errors are
// written to env.Err. When ctx ends, so does the command.
func Run(ctx context.Context, env *cli.Env, args []string) int {
	env.Start()
	root := New(env)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		env.Progress.Stop()
		return cli.ExitOK
	}
	if errors.Is(err, cli.ErrInterrupted) { // of what only a signal ends
		env.Progress.Stop()
		return cli.ExitInterrupted
	}
	code, hint := cli.ExitCode(ctx, err), hint.Of(err)
	if hint == "" && code == cli.ExitUsage {
		hint = cmd.CommandPath() + " --help"
	}
	err = progress.WithoutRequests(err)
	if code == cli.ExitInterrupted { // which the library calls otherwise
		err, hint = errors.New(strings.ReplaceAll(err.Error(), context.Canceled.Error(), cli.ErrInterrupted.Error())), ""
	}
	env.Progress.Fail(err, env.Called(hint))
	return code
}

// New returns the tree of commands.
func New(env *cli.Env) *cobra.Command {
	var config string
	root := cli.Group(cli.ProgramName, "Connect the pod networks of Kubernetes clusters", `
liqoctl connects the pod networks of Kubernetes clusters. Every pod of one cluster reaches every pod of the other,
encrypted by WireGuard, even if their pod CIDRs overlap or their network plugins differ.

Every flag can also be set in the configuration file, by its name, or in the environment: --remote-context as
LIQOCTL_REMOTE_CONTEXT. The command line overrides the environment, and the environment overrides the file.

Exit codes: 0 success, 1 failure, 2 usage error, 3 unhealthy, 4 no free address, 130 interrupted.`, `
  # Connect the clusters of two kube contexts, and show the state of the peering
  liqoctl network connect --context a --remote-context b
  liqoctl network status --context a`)
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: cmp.Or(env.Program, cli.ProgramName)}
	root.SilenceErrors, root.SilenceUsage = true, true
	addVersionFlag(env, root)
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { env.Help(cmd) })
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetGlobalNormalizationFunc(cli.UpstreamName)
	ui.TextFlag(root.PersistentFlags(), &config, cli.ConfigFlag, "FILE", "configuration file (default $XDG_CONFIG_HOME/liqoctl/config.yaml)", nil)
	ui.BoolFlag(root.PersistentFlags(), &env.Verbose, "verbose,v", "print stages, latencies and the source of the MTU to standard error")
	ui.BoolFlag(root.PersistentFlags(), &env.LogRequests, "log-requests", "log every request to a cluster to standard error")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := cli.ApplySettings(env, cmd, config); err != nil {
			return err
		}
		env.Start()
		if err := cmd.ValidateFlagGroups(); err != nil { // else cobra's own error, which is no usage error
			return &cli.UsageError{Err: err}
		}
		return nil
	}
	root.AddCommand(network.New(env), ipam.New(env), image.New(env), newVersion(env), incluster.New(env))
	cli.AddCompletions(env, root)
	return root
}
