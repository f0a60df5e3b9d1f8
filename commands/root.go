// Package commands is liqoctl's command line: one file a command, each from flags to options to the call that
// does the work. What is done is not in scope: see internal/peering, internal/helper, internal/image and ipam.
package commands

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/hint"
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
	code, hint := exitCode(ctx, err), hint.Of(err)
	if hint == "" && code == ExitUsage {
		hint = cmd.CommandPath() + " --help"
	}
	err = withoutRequests(err)
	if code == ExitInterrupted { // which the library calls otherwise
		err, hint = errors.New(strings.ReplaceAll(err.Error(), context.Canceled.Error(), errInterrupted.Error())), ""
	}
	env.progress.fail(err, env.called(hint))
	return code
}

// New returns the tree of commands.
func New(env *Env) *cobra.Command {
	var config string
	var verbose bool
	root := group(programName, "Connect the pod networks of Kubernetes clusters", `
liqoctl connects the pod networks of Kubernetes clusters. Every pod of one cluster reaches every pod of the other,
encrypted by WireGuard, even if their pod CIDRs overlap or their network plugins differ.

Every flag can also be set in the configuration file, by its name, or in the environment: --remote-context as
LIQOCTL_REMOTE_CONTEXT. The command line overrides the environment, and the environment overrides the file.

Exit codes: 0 success, 1 failure, 2 usage error, 3 unhealthy, 4 no free address, 130 interrupted.`, `
  # Connect the clusters of two kube contexts, and show the state of the peering
  liqoctl network connect --context a --remote-context b
  liqoctl network status --context a`)
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: cmp.Or(env.Program, programName)}
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { env.help(cmd) })
	root.SetFlagErrorFunc(flagError)
	root.SetGlobalNormalizationFunc(upstreamName)
	textFlag(root.PersistentFlags(), &config, configFlag, "FILE", "configuration file (default $XDG_CONFIG_HOME/liqoctl/config.yaml)", nil)
	boolFlag(root.PersistentFlags(), &verbose, "verbose,v", "log every request to a cluster to standard error")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := applySettings(env, cmd, config); err != nil {
			return err
		}
		env.start(verbose)
		return nil
	}
	root.AddCommand(newNetwork(env), newIPAM(env), newImage(env), newVersion(env), newHelper(env))
	addCompletions(env, root)
	return root
}
