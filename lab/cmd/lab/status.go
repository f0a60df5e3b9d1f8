package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/control"
)

func newStatus(name *string) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the lab's clusters and nodes",
		Args:  cobra.NoArgs,
		RunE: onLab(name, func(cmd *cobra.Command, l *lab.Lab, _ []string) error {
			s, err := l.Status(cmd.Context())
			if err != nil {
				return err
			}
			switch output {
			case "json":
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(s)
			case "":
				return printStatus(cmd.OutOrStdout(), s)
			default:
				return fmt.Errorf("output %q: want json or nothing", output)
			}
		}),
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", `"json", or nothing for a table`)
	return cmd
}

func printStatus(out io.Writer, s control.Status) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "CLUSTER\tNODE\tADDRESS\tPODS\tSTATE")
	for _, c := range s.Clusters {
		for _, n := range c.Nodes {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", c.Name, n.Name, n.Address, n.PodCIDR, n.State)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "kubeconfig: %s\nlogs: %s\n", s.Kubeconfig, s.Logs)
	return err
}
