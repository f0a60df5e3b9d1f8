package commands

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"liqonet.io/liqonet/internal/peering"
)

// defaultTimeout bounds an operation on clusters.
const defaultTimeout = 2 * time.Minute

// operation is what a network command does once its flags are options. It tells the reporter how it goes on.
type operation[O, R any] func(context.Context, O, peering.Reporter) (R, error)

// perform runs an operation and prints its result; text writes it for people.
func perform[O, R any](ctx context.Context, env *Env, do operation[O, R], options O, output format, text func(R) string) error {
	result, err := do(ctx, options, env.progress)
	if err != nil {
		return err
	}
	env.progress.stop()
	return answer(env, output, result, text)
}

// answer prints a result.
func answer[R any](env *Env, output format, result R, text func(R) string) error {
	if output.structured() {
		return output.encode(env.Out, result)
	}
	_, err := io.WriteString(env.Out, visible(text(result)))
	return err
}

func newNetwork(env *Env) *cobra.Command {
	cmd := group("network", "Connect clusters, and show and remove peerings", `
Connect clusters, and show and remove their peerings. kubectl's own flags choose the local cluster; the same flags with
the prefix --remote- choose the remote cluster.`, `
  liqoctl network connect --context a --remote-context b
  liqoctl network status --context a
  liqoctl network disconnect --context a --remote-context b`)
	local := newClusterFlags()
	local.register(cmd, cmd.PersistentFlags())
	cmd.AddCommand(
		newNetworkInit(env, local, peering.Init),
		newNetworkConnect(env, local, peering.Connect),
		newNetworkRender(env, local),
		newNetworkDisconnect(env, local, peering.Disconnect),
		newNetworkExpose(env, local, peering.Expose),
		newNetworkUnexpose(env, local, peering.Withdraw),
		newNetworkReset(env, local, peering.Reset),
		newNetworkStatus(env, local, statusActions{peering.Status, peering.Watch, peering.ReadTranslationStatus}),
		newNetworkVerifyClean(env, local, peering.Sweep),
		newNetworkRole(env, local),
		newNetworkGuard(env, local, peering.GuardedRanges),
	)
	return cmd
}

// dryRunFlag adds the flag by which a command prints its plan and makes no changes.
func dryRunFlag(cmd *cobra.Command, to *bool) {
	boolFlag(cmd.Flags(), to, "dry-run", "print the changes that the command would make, and make none")
}

// timeoutFlag adds the flag that bounds an operation.
func timeoutFlag(flags *pflag.FlagSet, timeout *time.Duration) {
	*timeout = defaultTimeout
	addFlag(flags, timeout, "timeout", "DURATION", "time limit of the whole command", positiveDuration)
}
