package commands

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/records"
)

// disconnectFlags are the flags and the argument of `network disconnect`.
type disconnectFlags struct {
	clusters twoClusters
	peer     string // "": the one with the remote cluster
	oneSide  bool
	yes      bool
	dryRun   bool
	timeout  time.Duration
	output   format
}

func newNetworkDisconnect(env *Env, local *clusterFlags, do operation[peering.DisconnectOptions, peering.Disconnection]) *cobra.Command {
	f := disconnectFlags{clusters: twoClusters{local, newRemoteFlags()}, output: formatText}
	cmd := &cobra.Command{
		Use:   "disconnect [PEER]",
		Short: "Remove a peering",
		Long: `Remove a peering from both clusters, and release its CIDRs. The command returns when nothing of the peering remains in
the kernels and API servers. Give the peer's name or the remote cluster. If the remote cluster no longer exists, remove
the local side with --one-side.

On a terminal the command asks for confirmation, unless --yes is given.`,
		Example: `  liqoctl network disconnect --context a --remote-context b

  # Cluster b no longer exists
  liqoctl network disconnect --context a b --one-side`,
		Args: arguments("[PEER]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				f.peer = args[0]
			}
			o, err := f.options(env)
			if err != nil {
				return err
			}
			if f.dryRun {
				return perform(cmd.Context(), env, dryly(peering.PlanDisconnect), o, f.output, describeDryRun)
			}
			if err := env.confirm(cmd.Context(), f.yes, f.question(o)); err != nil {
				return err
			}
			return perform(cmd.Context(), env, do, o, f.output, describeDisconnection)
		},
	}
	f.clusters.remote.register(cmd, cmd.Flags())
	boolFlag(cmd.Flags(), &f.oneSide, "one-side", "leave the remote cluster unchanged")
	yesFlag(cmd, &f.yes)
	dryRunFlag(cmd, &f.dryRun)
	timeoutFlag(cmd.Flags(), &f.timeout)
	upstreamFlags(cmd, "wait", "skip-validation")
	outputFlag(cmd, &f.output)
	return cmd
}

func (f *disconnectFlags) options(env *Env) (peering.DisconnectOptions, error) {
	o := peering.DisconnectOptions{Peer: f.peer, OneSide: f.oneSide, Timeout: f.timeout}
	if f.peer != "" {
		if err := records.ValidateName(f.peer); err != nil {
			return o, usagef("%w", err)
		}
	}
	switch {
	case f.clusters.remote.chosen():
	case f.peer == "":
		return o, usagef("a peer is required: its name, or --remote-context")
	case !f.oneSide:
		err := usagef("the remote cluster of peer %q is required", f.peer)
		err.hint = "set --remote-context, or leave the remote cluster unchanged with --one-side"
		return o, err
	}
	var err error
	o.Local.Cluster, o.Remote.Cluster, err = f.clusters.connectChosen(env)
	return o, err
}

func (f *disconnectFlags) question(o peering.DisconnectOptions) string {
	if o.Remote.Cluster == nil {
		return fmt.Sprintf("Remove the peering with %q from cluster %q, and leave the peer unchanged?", f.peer, o.Local.Cluster.Context)
	}
	return fmt.Sprintf("Remove the peering of clusters %q and %q?", o.Local.Cluster.Context, o.Remote.Cluster.Context)
}
