package network

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/peering/removal"
)

func newDisconnect(env *cli.Env, local *cli.ClusterFlags, do cli.Operation[removal.DisconnectOptions, removal.Disconnection]) *cobra.Command {
	var o removal.DisconnectOptions
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
		Args: cli.Arguments("[PEER]"),
	}
	clusters := cli.NewTwoClusters(cmd, local)
	ui.BoolFlag(cmd.Flags(), &o.OneSide, "one-side", "leave the remote cluster unchanged; with PEER it is not contacted")
	return cli.Action[removal.DisconnectOptions, removal.Disconnection]{
		Do: do, Plan: removal.PlanDisconnect, Text: describeDisconnection, Timeout: &o.Timeout, BySize: true, Ignored: []string{"wait", "skip-validation"},
		Options: func(args []string) (_ removal.DisconnectOptions, err error) {
			o.Peer = strings.Join(args, "")
			if err := checkDisconnect(o, clusters.Remote.Chosen()); err != nil {
				return o, err
			}
			if o.OneSide && o.Peer != "" { // a remote cluster that is configured may be gone
				o.Local, err = local.Connect(env)
			} else {
				o.Local, o.Remote, err = clusters.ConnectChosen(env)
			}
			return o, err
		},
		Ask: func(o removal.DisconnectOptions) string {
			switch {
			case o.OneSide && o.Peer != "":
				return fmt.Sprintf("Remove the peering with %q from cluster %q, and leave the peer unchanged?", o.Peer, o.Local.Context)
			case o.OneSide:
				return fmt.Sprintf("Remove the peering with cluster %q from cluster %q, and leave the peer unchanged?", o.Remote.Context, o.Local.Context)
			}
			return fmt.Sprintf("Remove the peering of clusters %q and %q?", o.Local.Context, o.Remote.Context)
		},
	}.Command(env, cmd)
}

// checkDisconnect rejects flags that do not identify the peering, or do not define what happens at the peer.
func checkDisconnect(o removal.DisconnectOptions, remote bool) error {
	switch {
	case remote:
	case o.Peer == "":
		return cli.Usagef("a peer is required: its name, or --remote-context")
	case !o.OneSide:
		err := cli.Usagef("the remote cluster of peer %q is required", o.Peer)
		err.Advice = "set --remote-context, or leave the remote cluster unchanged with --one-side"
		return err
	}
	return nil
}
