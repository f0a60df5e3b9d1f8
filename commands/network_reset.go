package commands

import (
	"time"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/peering"
)

// resetFlags are the flags of `network reset`.
type resetFlags struct {
	cluster *clusterFlags
	force   bool
	timeout time.Duration
	output  format
}

func newNetworkReset(env *Env, local *clusterFlags, do operation[peering.ResetOptions, peering.ResetResult]) *cobra.Command {
	f := resetFlags{cluster: local, output: formatText}
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Remove liqonet from a cluster",
		Long: `Remove liqonet from a cluster. It returns when nothing is left, in the kernels of the nodes and in the API
server. Where the cluster is connected to others it refuses; with --force it takes those connections apart on
this side only.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options(env)
			if err != nil {
				return err
			}
			return perform(cmd.Context(), env, do, o, f.output, describeReset)
		},
	}
	cmd.Flags().BoolVar(&f.force, "force", false, "remove connections too, on this side")
	timeoutFlag(cmd.Flags(), &f.timeout)
	enumFlag(cmd, &f.output, "output", "o", "how to print the result", formatText, formatJSON)
	return cmd
}

func (f *resetFlags) options(env *Env) (peering.ResetOptions, error) {
	o := peering.ResetOptions{Force: f.force, Timeout: f.timeout}
	if err := checkTimeout(f.timeout); err != nil {
		return o, err
	}
	var err error
	o.Side.Cluster, err = f.cluster.connect(env)
	return o, err
}
