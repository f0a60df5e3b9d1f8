package commands

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/addresses"
	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/ipam"
)

// addressCheck compares the reservations of a cluster with what is there.
type addressCheck func(context.Context, addresses.CheckOptions) (addresses.CheckResult, error)

// checkFlags are the flags of `ipam check`.
type checkFlags struct {
	cluster   *cluster.Cluster
	overrides cluster.Overrides
	repair    bool
	dryRun    bool
	output    format
}

func newIPAMCheck(env *Env, connect connector, do addressCheck) *cobra.Command {
	f := checkFlags{output: formatText}
	cmd := &cobra.Command{
		Use:   "check [--repair]",
		Short: "Compare the reservations with the peerings and the cluster",
		Long: `Compare the reservations with the peerings and with the current CIDRs of the cluster. The command finds ranges reserved
for peerings that do not exist or do not use them, ranges in use but not reserved, and overlaps.

--repair prints a plan and repairs what is safe to repair; other findings come with the command that helps. The exit code
is 0 if nothing is left to repair, and 3 otherwise.`,
		Example: `  liqoctl ipam check --context a
  liqoctl ipam check --context a --repair`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if f.cluster, err = connect.installed(cmd.Context()); err != nil {
				return err
			}
			return f.run(cmd.Context(), env, do)
		},
	}
	prefixesFlag(cmd.Flags(), &f.overrides.PodCIDRs, "pod-cidr", "pod CIDRs (default: discovered)")
	prefixesFlag(cmd.Flags(), &f.overrides.ServiceCIDRs, "service-cidr", "service CIDRs (default: discovered)")
	prefixesFlag(cmd.Flags(), &f.overrides.NodeNetworks, "node-network", "networks of the nodes (default: discovered)")
	boolFlag(cmd.Flags(), &f.repair, "repair", "repair what is safe to repair")
	addDryRunFlag(cmd, &f.dryRun)
	outputFlag(cmd, &f.output)
	return cmd
}

func (f *checkFlags) run(ctx context.Context, env *Env, do addressCheck) error {
	o := addresses.CheckOptions{Cluster: f.cluster, Overrides: f.overrides, Repair: f.repair && !f.dryRun}
	if f.repair {
		plan := env.Out
		if f.output.structured() {
			plan = env.Err // the answer is one document
		}
		o.Planned = func(c addresses.CheckResult) error {
			_, err := io.WriteString(plan, describePlan(c))
			return err
		}
	}
	check, err := do(ctx, o)
	if err != nil {
		return err
	}
	for _, note := range check.Notes {
		env.progress.Note(note)
	}
	err = answer(env, f.output, check, func(c addresses.CheckResult) string { return describeCheck(c, f.output) })
	if err == nil && check.Open() > 0 {
		err = errDisorder
	}
	return err
}

// describePlan says what a repair is about to do.
func describePlan(c addresses.CheckResult) string {
	var b strings.Builder
	for _, f := range c.Findings {
		if f.Repair != "" {
			writef(&b, "plan: %s %s: %s\n", f.Repair, f.Reservation.Range, f.String())
		}
	}
	return b.String()
}

// describeCheck is the answer of `ipam check` for people; wide has all that is known of the reservations, in a table.
func describeCheck(c addresses.CheckResult, output format) string {
	var b strings.Builder
	held := make([]ipam.Reservation, len(c.Findings))
	for i, f := range c.Findings {
		held[i] = f.Reservation
		if output != formatWide {
			writef(&b, "%s\n  %s\n", f.String(), advice(f))
		}
	}
	if output == formatWide && len(held) > 0 {
		rows := reservationRows(held, formatWide)
		rows[0] = slices.Concat([]string{"FINDING"}, rows[0], []string{"WHAT TO DO", "WHY"})
		for i, f := range c.Findings {
			rows[i+1] = slices.Concat([]string{string(f.Kind)}, rows[i+1], []string{advice(f), f.Why})
		}
		_ = table(&b, rows) // a builder takes everything
	}
	summary := "no findings"
	if n := len(c.Findings); n > 0 {
		summary = fmt.Sprintf("%d findings, %d of them repaired", n, n-c.Open())
	}
	writef(&b, "%d reservations: %s\n", c.Reservations, summary)
	return b.String()
}

// advice says what becomes of a finding, or should.
func advice(f addresses.Finding) string {
	switch {
	case f.Repaired:
		return "repaired"
	case f.Repair != "":
		return "repair it with --repair"
	}
	return f.Hint
}
