package commands

import (
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
	timeout  time.Duration
	output   format
}

func newNetworkDisconnect(env *Env, local *clusterFlags, do operation[peering.DisconnectOptions, peering.Disconnection]) *cobra.Command {
	f := disconnectFlags{clusters: twoClusters{local, newRemoteFlags()}, output: formatText}
	cmd := &cobra.Command{
		Use:   "disconnect [PEER]",
		Short: "Take a connection apart",
		Long: `Take a connection apart, on both sides, and free the addresses that it used. It returns when nothing of it is
left in the kernels and API servers. The peer is named, or it is the remote cluster. A side that cannot be
reached any more is left out with --one-side.`,
		Example: `  liqoctl network disconnect --context a --remote-context b
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
			return perform(cmd.Context(), env, do, o, f.output, describeDisconnection)
		},
	}
	f.clusters.remote.register(cmd, cmd.Flags())
	cmd.Flags().BoolVar(&f.oneSide, "one-side", false, "leave the remote cluster as it is")
	timeoutFlag(cmd.Flags(), &f.timeout)
	cmd.Flags().Bool("wait", true, "wait until nothing is left; accepted for compatibility, always on")
	enumFlag(cmd, &f.output, "output", "o", "how to print the result", formatText, formatJSON)
	return cmd
}

func (f *disconnectFlags) options(env *Env) (peering.DisconnectOptions, error) {
	o := peering.DisconnectOptions{Peer: f.peer, OneSide: f.oneSide, Timeout: f.timeout}
	if err := checkTimeout(f.timeout); err != nil {
		return o, err
	}
	if f.peer != "" {
		if err := records.ValidateName(f.peer); err != nil {
			return o, usagef("%w", err)
		}
	}
	var err error
	if f.clusters.remote.chosen() {
		o.Local.Cluster, o.Remote.Cluster, err = f.clusters.connect(env)
		return o, err
	}
	switch {
	case f.peer == "":
		return o, usagef("no peer given: name it, or the remote cluster with --remote-context")
	case !f.oneSide:
		err := usagef("no remote cluster given for peer %q", f.peer)
		err.hint = "name it with --remote-context, or leave it as it is with --one-side"
		return o, err
	}
	o.Local.Cluster, err = f.clusters.local.connect(env)
	return o, err
}
