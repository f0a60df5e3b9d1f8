// Package ipam has the commands of the address registry of a cluster.
package ipam

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/ipam"
)

// connector builds the clients of the selected cluster, after the flags are read, and checks that it answers.
type connector func(context.Context) (*kube.Cluster, error)

// New returns the group of these commands.
func New(env *cli.Env) *cobra.Command {
	cmd := cli.Group("ipam", "Show and reserve CIDRs of a cluster", `
Show and reserve CIDRs of a cluster. Every CIDR has one owner: the cluster, a peering, or a name that you choose.`, `
  liqoctl ipam list
  liqoctl ipam list 10.71.3.7`)
	flags := cli.NewClusterFlags()
	flags.Register(cmd, cmd.PersistentFlags())
	connect := func(ctx context.Context) (*kube.Cluster, error) { return flags.Reach(ctx, env) }
	cmd.AddCommand(
		newIPAMList(env, connect),
		newIPAMReserve(env, connect),
		newIPAMAcquire(env, connect),
		newIPAMRelease(env, connect),
		newIPAMTranslate(env, flags),
	)
	return cmd
}

// reservations is the answer of commands for reservations.
type reservations struct {
	document any    // structured output
	summary  string // a line before the table
	text     string // text output, instead of the ranges
	all      []ipam.Reservation
	table    bool // text output is a table, even without -o wide
}

// onReservations is the action of a command on a cluster's reservations.
type onReservations = func(context.Context, *kube.Cluster) (reservations, error)

// changingReservations is reservationCommand for what changes them: it has --dry-run.
func changingReservations(env *cli.Env, connect connector, cmd *cobra.Command, prepare func(args []string) (onReservations, error)) *cobra.Command {
	var dryRun bool
	cli.AddDryRunFlag(cmd, &dryRun)
	return reservationCommand(env, connect, cmd, func(args []string) (onReservations, error) {
		run, err := prepare(args)
		if err != nil || !dryRun {
			return run, err
		}
		return func(ctx context.Context, c *kube.Cluster) (reservations, error) {
			c = c.DryRun()
			_, err := run(ctx, c)
			plan, err := plan.Of(ctx, err, c)
			a := cli.AnswerOf(plan)
			return reservations{document: a, text: cli.DescribeDryRun(a, cmd.Flag("output").Value.String() == string(ui.FormatWide))}, err
		}, nil
	})
}

// addReservations changes reservations, after restoring missing reservations for ranges that the cluster and its
// peerings use.
func addReservations(ctx context.Context, c *kube.Cluster, change func(*ipam.Registry) error) error {
	fabric, err := inventory.Fabric(ctx, c)
	if err != nil {
		return err
	}
	return inventory.AddReservations(ctx, c, fabric, change)
}

// reservationCommand completes a command on a cluster's reservations. prepare checks the command line before any
// cluster is asked, and returns what is done then.
func reservationCommand(env *cli.Env, connect connector, cmd *cobra.Command, prepare func(args []string) (onReservations, error)) *cobra.Command {
	output := ui.FormatText
	ui.OutputFlag(cmd, &output, ui.FormatWide)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		run, err := prepare(args)
		if err != nil {
			return err
		}
		c, err := connect(cmd.Context())
		if err != nil {
			return err
		}
		if err := inventory.CheckInstalled(cmd.Context(), c); err != nil {
			return err
		}
		r, err := run(cmd.Context(), c)
		if err != nil {
			return err
		}
		return r.print(env, output)
	}
	return cmd
}

func (r reservations) print(env *cli.Env, output ui.Format) error {
	if output.Structured() {
		return output.Encode(env.Out, r.document)
	}
	if r.summary != "" {
		ui.Writef(env.Out, "%s\n", r.summary)
	}
	switch {
	case len(r.all) == 0:
		_, err := io.WriteString(env.Out, ui.Visible(r.text))
		return err
	case r.table || output == ui.FormatWide:
		if r.summary != "" {
			fmt.Fprintln(env.Out)
		}
		return reservationColumns().Print(env.Out, output, r.all)
	default:
		for _, held := range r.all {
			ui.Writef(env.Out, "%s\n", held.Range)
		}
	}
	return nil
}

func reservationColumns() ui.Columns[ipam.Reservation] {
	type row = ipam.Reservation
	return ui.Columns[row]{
		{Title: "RANGE", Cell: func(r row) string { return r.Range.String() }},
		{Title: "USED FOR", Cell: row.Use},
		{Title: "REAL RANGE", Cell: func(r row) string {
			if !r.Real.IsValid() {
				return ""
			}
			return r.Real.String()
		}},
		{Title: "OWNER", Wide: true, Cell: func(r row) string { return string(r.Owner) }},
		{Title: "PURPOSE", Wide: true, Cell: func(r row) string { return string(r.Purpose) }},
		{Title: "SHARED", Wide: true, Cell: func(r row) string { return map[bool]string{true: "yes", false: "no"}[r.Shared] }},
	}
}

// ownerFlag adds the flag for the owner of a reservation.
func ownerFlag(cmd *cobra.Command, to *ipam.Owner, usage string) {
	ui.AddFlag(cmd.Flags(), to, "owner", "NAME", usage, func(name string) (ipam.Owner, error) {
		owner := ipam.User(name)
		if name == "" {
			return "", nil
		}
		if owner.Validate() != nil {
			return "", errors.New("must consist of letters, digits, '-', '.' and '_'")
		}
		return owner, nil
	})
}
