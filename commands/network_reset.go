package commands

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/peering"
)

// resetFlags are the flags of `network reset`.
type resetFlags struct {
	cluster *clusterFlags
	force   bool
	yes     bool
	dryRun  bool
	timeout time.Duration
	output  format
}

func newNetworkReset(env *Env, local *clusterFlags, do operation[peering.ResetOptions, peering.ResetResult]) *cobra.Command {
	f := resetFlags{cluster: local, output: formatText}
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options(env)
			if err != nil {
				return err
			}
			if f.dryRun {
				return perform(cmd.Context(), env, dryly(peering.PlanReset), o, f.output, describeDryRun)
			}
			if err := env.confirm(cmd.Context(), f.yes, fmt.Sprintf("Remove liqonet from cluster %q?", o.Side.Cluster.Context)); err != nil {
				return err
			}
			return perform(cmd.Context(), env, do, o, f.output, describeReset)
		},
	}
	boolFlag(cmd.Flags(), &f.force, "force", "remove the cluster's side of its peerings too")
	yesFlag(cmd, &f.yes)
	dryRunFlag(cmd, &f.dryRun)
	timeoutFlag(cmd.Flags(), &f.timeout)
	upstreamFlags(cmd, "wait", "skip-validation")
	outputFlag(cmd, &f.output)
	return cmd
}

func (f *resetFlags) options(env *Env) (peering.ResetOptions, error) {
	o := peering.ResetOptions{Force: f.force, Timeout: f.timeout}
	var err error
	o.Side.Cluster, err = f.cluster.connect(env)
	return o, err
}
