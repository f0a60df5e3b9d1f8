package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/demo"
	"liqonet.io/liqonet/lab/spec"
)

func newDemo(name *string) *cobra.Command {
	var liqoctl string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Start the lab, connect its clusters and fetch a page both ways",
		Long: `demo starts clusters a and b with the same pod CIDR unless they run, connects them with liqoctl, and fetches
a page from pod to pod both ways. It prints every command that it runs. Run again, it shows the same.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := os.Stat(liqoctl); err != nil {
				return err
			}
			if err := up(cmd, *name, spec.Default()); err != nil {
				return err
			}
			l, err := lab.Open(cmd.Context(), *name)
			if err != nil {
				return err
			}
			err = demo.Demo{Lab: l, Liqoctl: liqoctl, Command: os.Args[0], Out: cmd.OutOrStdout()}.Run(cmd.Context())
			if ctx := cmd.Context(); ctx.Err() != nil {
				return errors.Join(ctx.Err(), err)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&liqoctl, "liqoctl", "bin/liqoctl", "path of the program")
	return cmd
}
