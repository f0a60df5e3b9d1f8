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
	if output != formatText {
		return output.encode(env.Out, result)
	}
	_, err := io.WriteString(env.Out, visible(text(result)))
	return err
}

func newNetwork(env *Env) *cobra.Command {
	cmd := group("network", "Connect the networks of clusters", `Connect the networks of clusters, see how the connections do, and take them apart. The local cluster is chosen
by kubectl's own flags, the remote one by the same flags with --remote- before their names.`)
	local := newClusterFlags()
	local.register(cmd, cmd.PersistentFlags())
	cmd.AddCommand(
		newNetworkInit(env, local, peering.Init),
		newNetworkConnect(env, local, peering.Connect),
		newNetworkDisconnect(env, local, peering.Disconnect),
		newNetworkExpose(env, local, peering.Expose),
		newNetworkWithdraw(env, local, peering.Withdraw),
		newNetworkReset(env, local, peering.Reset),
		newNetworkStatus(env, local, statusActions{peering.Status, peering.Watch, peering.ReadTranslationStatus}),
		newNetworkVerifyClean(env, local, peering.Sweep),
		newNetworkRole(env, local),
		newNetworkGuard(env, local, peering.GuardedRanges),
	)
	return cmd
}

// timeoutFlag adds the flag that bounds an operation.
func timeoutFlag(flags *pflag.FlagSet, timeout *time.Duration) {
	flags.DurationVar(timeout, "timeout", defaultTimeout, "`DURATION` after which the operation is given up")
	checkFlag(flags, "timeout", duration)
}

// checkTimeout refuses durations that end before they begin.
func checkTimeout(timeout time.Duration) error {
	if timeout <= 0 {
		return usagef("--timeout %s is not positive", timeout)
	}
	return nil
}
