package commands

import (
	"fmt"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/removal"
)

func newNetworkReset(env *Env, local *clusterFlags, do operation[removal.ResetOptions, removal.ResetResult]) *cobra.Command {
	var o removal.ResetOptions
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Remove liqonet from a cluster",
		Long: `Remove liqonet from a cluster. The command returns when nothing remains in the kernels of the nodes and in the API
server. It refuses while the cluster has peerings; --force removes them too, in this cluster only.

On a terminal the command asks for confirmation, unless --yes is given.`,
		Example: `  liqoctl network reset --context a

  # In a script, with the peerings that remain
  liqoctl network reset --context a --force --yes`,
		Args: arguments(),
	}
	boolFlag(cmd.Flags(), &o.Force, "force", "remove the cluster's side of its peerings too")
	return action[removal.ResetOptions, removal.ResetResult]{
		do: do, plan: removal.PlanReset, text: describeReset, timeout: &o.Timeout, bySize: true, ignored: []string{"wait", "skip-validation"},
		options: func([]string) (_ removal.ResetOptions, err error) {
			o.Cluster, err = local.connect(env)
			return o, err
		},
		ask: func(o removal.ResetOptions) string {
			return fmt.Sprintf("Remove liqonet from cluster %q?", o.Cluster.Context)
		},
	}.command(env, cmd)
}
