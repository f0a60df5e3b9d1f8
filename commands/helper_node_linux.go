package commands

import (
	"context"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/helper"
)

// newHelperNode returns the command that the DaemonSet runs.
func newHelperNode(env *Env, run func(helper.Node, context.Context) error) *cobra.Command {
	var f helperFlags
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Reconcile the kernel of a node",
		Args:  arguments(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			var node helper.Node
			if node.Env, node.Name, err = f.options(env); err != nil {
				return err
			}
			if err := addClient(env, &node.Env); err != nil {
				return err
			}
			return run(node, cmd.Context())
		},
	}
	// A node helper shares the node's addresses: only the node itself may ask.
	f.register(cmd, "127.0.0.1:6093")
	return cmd
}
