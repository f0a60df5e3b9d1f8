package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/datapath"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/progress"
)

// PlanAnswer is the answer of a command with --dry-run.
type PlanAnswer struct {
	Clusters []clusterPlan `json:"clusters"`
}

// clusterPlan is what would change in a cluster, and in the kernels of its nodes and gateways.
type clusterPlan struct {
	plan.ClusterPlan
	Kernels []datapath.Change `json:"kernels"`
	// KernelsLater is set if the changes of kernels depend on decisions of the run itself.
	KernelsLater bool `json:"kernelsKnownAfterApply,omitempty"`
}

// dryly converts an operation that returns a plan into one that returns an answer for output.
func dryly[O any](plan Operation[O, plan.Plan]) Operation[O, PlanAnswer] {
	return func(ctx context.Context, o O, r progress.Reporter) (PlanAnswer, error) {
		p, err := plan(ctx, o, r)
		return AnswerOf(p), err
	}
}

// AnswerOf returns the plan as it is printed.
func AnswerOf(p plan.Plan) PlanAnswer {
	a := PlanAnswer{Clusters: []clusterPlan{}}
	for _, c := range p.Clusters {
		one := clusterPlan{ClusterPlan: c, Kernels: []datapath.Change{}, KernelsLater: c.After == nil}
		if c.After != nil {
			one.Kernels = append(one.Kernels, datapath.Changes(c.Before, *c.After)...)
		}
		a.Clusters = append(a.Clusters, one)
	}
	return a
}

// AddDryRunFlag adds the flag that has a command print a plan.
func AddDryRunFlag(cmd *cobra.Command, to *bool) {
	ui.BoolFlag(cmd.Flags(), to, dryRunFlag, "print the changes that the command would make, and make none")
}

// DescribeDryRun is the answer for people.
func DescribeDryRun(a PlanAnswer) string {
	var b strings.Builder
	for _, c := range a.Clusters {
		b.WriteString(c.String())
		if c.KernelsLater {
			ui.Writef(&b, "  kernels of nodes and gateways: %s\n", kube.ErrLater)
		}
		for _, k := range c.Kernels {
			where := "node " + k.Node
			if k.Gateway != "" {
				where = "gateway of " + k.Gateway
			}
			ui.Writef(&b, "  kernel of %s:\n", where)
			for _, step := range k.Steps {
				fmt.Fprintf(&b, "    %s\n", strings.ReplaceAll(step, "\t", "  "))
			}
		}
	}
	return b.String()
}
