package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/peering"
)

// errDisorder says that the answer, which was printed, is that reservations are not in order.
var errDisorder = errors.New("not all reservations are in order")

// addressCheck compares the reservations of a cluster with what is there.
type addressCheck func(context.Context, peering.AddressCheckOptions) (peering.AddressCheck, error)

// checkFlags are the flags of `ipam check`.
type checkFlags struct {
	side   peering.Side
	repair bool
	output format
}

func newIPAMCheck(env *Env, connect connector, do addressCheck) *cobra.Command {
	f := checkFlags{output: formatText}
	cmd := &cobra.Command{
		Use:   "check [--repair]",
		Short: "Compare the reservations with the peerings and with the cluster as it is now",
		Long: `Compare the reservations with the peerings and with the ranges that the cluster really has now: what is held for
peerings that do not exist or do not use it, what is used and not held, what is used twice. With --repair, what is safe
is mended, after the plan was printed; the rest comes with the command that helps. The exit code is 0 when all is in
order, or was brought in order, and 3 when something is not.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if f.side.Cluster, err = connect(); err != nil {
				return err
			}
			return f.run(cmd.Context(), env, do)
		},
	}
	f.ranges(cmd, "pod-cidr", &f.side.Overrides.PodCIDRs, "ranges of the pods")
	f.ranges(cmd, "service-cidr", &f.side.Overrides.ServiceCIDRs, "ranges of the Services")
	f.ranges(cmd, "node-network", &f.side.Overrides.NodeNetworks, "networks of the nodes")
	cmd.Flags().BoolVar(&f.repair, "repair", false, "mend what is safe to mend")
	enumFlag(cmd, &f.output, "output", "o", "how to print the findings", formatText, formatJSON, formatYAML)
	return cmd
}

func (f *checkFlags) ranges(cmd *cobra.Command, name string, value *[]netip.Prefix, usage string) {
	cmd.Flags().Var(newPrefixes(value), name, usage+" (default: discovered)")
}

func (f *checkFlags) run(ctx context.Context, env *Env, do addressCheck) error {
	o := peering.AddressCheckOptions{Side: f.side, Repair: f.repair}
	if f.repair {
		plan := env.Out
		if f.output != formatText {
			plan = env.Err // the answer is one document
		}
		o.Planned = func(c peering.AddressCheck) error { return writePlan(plan, c) }
	}
	check, err := do(ctx, o)
	if err != nil {
		return err
	}
	for _, note := range check.Notes {
		env.progress.Note(note)
	}
	if f.output != formatText {
		err = f.output.encode(env.Out, check)
	} else {
		err = writeCheck(env.Out, check)
	}
	if err == nil && check.Open() > 0 {
		err = errDisorder
	}
	return err
}

// writePlan writes what a repair is about to do.
func writePlan(w io.Writer, c peering.AddressCheck) error {
	for _, f := range c.Findings {
		if f.Repair == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "plan: %s %s: %s\n", f.Repair, f.Reservation.Range, f); err != nil {
			return err
		}
	}
	return nil
}

// writeCheck writes the findings for people.
func writeCheck(w io.Writer, c peering.AddressCheck) error {
	for _, f := range c.Findings {
		advice := ""
		switch {
		case f.Repaired:
			advice = "  repaired"
		case f.Repair != "":
			advice = "  mend it with --repair"
		case f.Hint != "":
			advice = "  " + f.Hint
		}
		if _, err := fmt.Fprintf(w, "%s\n%s\n", f, advice); err != nil {
			return err
		}
	}
	summary := "all in order"
	if n := len(c.Findings); n > 0 {
		summary = fmt.Sprintf("%d findings, %d of them repaired", n, n-c.Open())
	}
	_, err := fmt.Fprintf(w, "%d reservations: %s\n", c.Reservations, summary)
	return err
}
