package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/lab"
)

func newNode(name *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Add, kill and start nodes",
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "add CLUSTER",
			Short: "Add a node to a cluster and wait until it is Ready",
			Args:  cobra.ExactArgs(1),
			RunE: onLab(name, func(cmd *cobra.Command, l *lab.Lab, args []string) error {
				n, err := l.AddNode(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), n.Name)
				return err
			}),
		},
		onNode(name, "kill NODE", "End a node as a power failure would", (*lab.Lab).KillNode),
		onNode(name, "start NODE", "Start a node that was killed and wait until it is Ready", (*lab.Lab).StartNode),
	)
	return cmd
}

// onNode is a command that does one thing to one node.
func onNode(name *string, use, short string, do func(*lab.Lab, context.Context, string) error) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: onLab(name, func(cmd *cobra.Command, l *lab.Lab, args []string) error {
			return do(l, cmd.Context(), args[0])
		}),
	}
}
