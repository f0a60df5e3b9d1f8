//go:build !linux

package incluster

import (
	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
)

// New returns a command that refuses: helpers work on the kernel of a Linux node.
func New(*cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:    "helper",
		Short:  "Run inside a cluster",
		Hidden: true,
		RunE:   func(*cobra.Command, []string) error { return cli.Usagef("helper: runs on Linux only") },
	}
}
