package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/lab/guest"
	"liqonet.io/liqonet/lab/node"
	"liqonet.io/liqonet/lab/supervisor"
)

// newInternal returns the commands by which the lab starts itself: its supervisor, the steps of a node's
// start, and the first program of a guest.
func newInternal() []*cobra.Command {
	hidden := func(use string, f func(cmd *cobra.Command, arg string) error) *cobra.Command {
		return &cobra.Command{
			Use: use, Hidden: true, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error { return f(cmd, args[0]) },
		}
	}
	return []*cobra.Command{
		hidden(supervisor.Command+" NAME", func(cmd *cobra.Command, name string) error {
			return supervisor.Run(cmd.Context(), name)
		}),
		{
			// User-mode Linux adds words of its own to the command line.
			Use: guest.InitCommand + " FILE", Hidden: true, Args: cobra.MinimumNArgs(1),
			RunE: func(_ *cobra.Command, args []string) error { return guest.Init(args[0]) },
		},
		hidden(node.BootCommand+" FILE", func(_ *cobra.Command, file string) error { return node.Boot(file) }),
		hidden(node.InitCommand+" FILE", func(_ *cobra.Command, file string) error { return node.Init(file) }),
		hidden(node.ServicesCommand+" FILE", func(cmd *cobra.Command, file string) error {
			return node.Services(cmd.Context(), file)
		}),
		{
			Use: node.BecomeCommand + " -- PROGRAM [ARGUMENT...]", Hidden: true, Args: cobra.MinimumNArgs(1),
			RunE: func(_ *cobra.Command, args []string) error { return node.Become(args) },
		},
		{
			Use: node.EnterCommand + " PID -- PROGRAM [ARGUMENT...]", Hidden: true, Args: cobra.MinimumNArgs(2),
			RunE: func(cmd *cobra.Command, args []string) error {
				pid, err := strconv.Atoi(args[0])
				if err != nil {
					return fmt.Errorf("process %q: not a number", args[0])
				}
				return run(cmd, node.Place{PID: pid}, args[1:])
			},
		},
	}
}
