package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/node"
)

func newExec(name *string) *cobra.Command {
	return &cobra.Command{
		Use:   "exec NODE -- PROGRAM [ARGUMENT...]",
		Short: "Run a program in a node, in the router, outside, or beside a control plane",
		Long: `exec runs a program in all of a node's namespaces, or, for "router", "outside" and CLUSTER-cp, in the network
namespace of the router, of the machine beyond it or of a control plane. Its exit code is the program's.`,
		Example: `  lab exec a-1 -- ip route
  lab exec a-1 -- workload get http://172.31.2.11:30080/
  lab exec router -- tcpdump -ni br-a                      # apt-get install tcpdump`,
		Args: cobra.MinimumNArgs(2),
		RunE: onLab(name, func(cmd *cobra.Command, l *lab.Lab, args []string) error {
			s, err := l.Status(cmd.Context())
			if err != nil {
				return err
			}
			place, ok := s.Places[args[0]]
			if !ok {
				return fmt.Errorf("no node %q runs: there are %s", args[0], strings.Join(slices.Sorted(maps.Keys(s.Places)), ", "))
			}
			return run(cmd, place, args[1:])
		}),
	}
}

// run runs a program at a place; its exit code becomes this program's.
func run(cmd *cobra.Command, place node.Place, argv []string) error {
	// On an interrupt the program ends by itself, and this command waits for it.
	code, err := node.Run(context.WithoutCancel(cmd.Context()), place, argv)
	if err != nil {
		return err
	}
	if code != 0 {
		return exitCode(code)
	}
	return nil
}
