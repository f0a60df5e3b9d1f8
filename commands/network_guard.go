package commands

import (
	"context"
	"io"
	"net/netip"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/templates"
)

func newNetworkGuard(env *Env, local *clusterFlags, guarded func(context.Context, peering.Side) ([]netip.Prefix, error)) *cobra.Command {
	return &cobra.Command{
		Use:   "guard",
		Short: "Print rules that close nodes while they boot",
		Long: `Print rules, a file for nft(8), that hold back what a node's pods send to peers from when the node boots until its
helper runs. Between the start of the first pod and that of the helper such packets would else leave by the default
route, in the clear. Nodes are to load the file before their kubelet starts; their helper removes the rules when its
own guard stands. Nothing is changed in the cluster.

The rules name the ranges of the peers that there are, and connect and disconnect do not know of the file: print it anew
when a peering comes or goes, and remove it from the nodes after a reset. What flushes the ruleset while a node boots,
such as Debian's nftables.service, has to come before it.`,
		Example: `  # On a node, where a unit of systemd, after nftables.service and before kubelet.service, runs nft -f /etc/liqonet.nft
  liqoctl network guard > /etc/liqonet.nft`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := local.connect(env)
			if err != nil {
				return err
			}
			peers, err := guarded(cmd.Context(), peering.Side{Cluster: c})
			if err != nil {
				return err
			}
			rules, err := templates.BootGuard(peers)
			if err != nil {
				return err
			}
			_, err = io.WriteString(env.Out, rules)
			return err
		},
	}
}
