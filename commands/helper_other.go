//go:build !linux

package commands

import "github.com/spf13/cobra"

// newHelper returns a command that refuses: helpers work on the kernel of a Linux node.
func newHelper(*Env) *cobra.Command {
	return &cobra.Command{
		Use:    "helper",
		Short:  "Run inside a cluster",
		Hidden: true,
		RunE:   func(*cobra.Command, []string) error { return usagef("helper: runs on Linux only") },
	}
}
