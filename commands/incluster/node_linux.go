package incluster

import (
	"context"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/internal/helper/node"
)

// newHelperNode returns the command that the DaemonSet runs.
func newHelperNode(env *cli.Env, run func(node.Helper, context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use:   "node",
		Short: "Reconcile the kernel of a node",
		Args:  cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			// A node helper shares the node's addresses, so probes and metrics are served to the node only.
			o, name, err := helperEnv(env, "127.0.0.1")
			if err != nil {
				return err
			}
			if err := addClient(env, &o); err != nil {
				return err
			}
			return run(node.Helper{Env: o, Name: name}, cmd.Context())
		},
	}
}
