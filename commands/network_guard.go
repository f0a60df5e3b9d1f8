package commands

import (
	"context"
	"io"
	"net/netip"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/templates"
)

func newNetworkGuard(env *Env, local *clusterFlags, guarded func(context.Context, *cluster.Cluster) ([]netip.Prefix, uint16, error)) *cobra.Command {
	return &cobra.Command{
		Use:   "guard",
		Short: "Print nftables rules that protect nodes while they boot",
		Long: `Print an nftables file that drops packets for peers from when a node boots until its helper runs. Without it, packets of
pods that start before the helper leave by the default route, unencrypted. Load the file on every node before kubelet
starts; the helper removes the rules when its own are in place. The command changes nothing in the cluster.

The rules contain the CIDRs of the current peers, and connect and disconnect do not update the file: print it again when
a peering is added or removed, and delete it after a reset. On Debian, load it after nftables.service, which flushes the
ruleset.`,
		Example: `  # For a systemd unit between nftables.service and kubelet.service that runs nft -f /etc/liqonet.nft
  liqoctl network guard --context a > /etc/liqonet.nft`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := local.connect(env)
			if err != nil {
				return err
			}
			peers, overlayPort, err := guarded(cmd.Context(), c)
			if err != nil {
				return err
			}
			rules, err := templates.BootGuard(peers, overlayPort)
			if err != nil {
				return err
			}
			_, err = io.WriteString(env.Out, rules)
			return err
		},
	}
}
