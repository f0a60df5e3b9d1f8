package cli

import (
	"context"
	"fmt"
	"slices"
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
	// Intent names what changes as users know it; Clusters has the objects and fields.
	Intent   []plan.Line   `json:"intent"`
	Clusters []clusterPlan `json:"clusters"`

	sum string
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
	a := PlanAnswer{Intent: append([]plan.Line{}, p.Intent()...), Clusters: []clusterPlan{}, sum: p.Sum()}
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

// DescribeDryRun is the answer for people: what changes for them, with wide also objects, fields and kernels, and the
// sum.
func DescribeDryRun(a PlanAnswer, wide bool) string {
	var b strings.Builder
	var contexts []string
	for _, c := range a.Clusters {
		contexts = append(contexts, c.Context)
	}
	if len(a.Intent) == 0 {
		ui.Writef(&b, "%s: no changes\n", strings.Join(contexts, " and "))
		return b.String()
	}
	for rest := a.Intent; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(l plan.Line) bool { return l.Action == "" || !slices.Equal(l.Clusters, rest[0].Clusters) })
		switch {
		case n < 0:
			n = len(rest)
		case n == 0: // a note
			ui.Writef(&b, "%s: %s\n", rest[0].Flat(), rest[0].New)
			rest = rest[1:]
			continue
		}
		ui.Writef(&b, "%s:\n", strings.Join(rest[0].Clusters, " and "))
		for _, text := range plan.Columns(rest[:n], func(l plan.Line) string { return marks[l.Action] + " " + l.Subject }) {
			ui.Writef(&b, "  %s\n", text)
		}
		rest = rest[n:]
	}
	for _, c := range a.Clusters {
		if wide {
			c.describe(&b)
		}
	}
	fmt.Fprintln(&b, a.sum)
	if !wide {
		fmt.Fprintln(&b, "Nothing was changed. Objects, fields and kernels: -o wide")
	}
	return b.String()
}

// marks begin the lines for actions.
var marks = map[kube.Action]string{kube.Created: "+", kube.Changed: "~", kube.Deleted: "-"}

// describe writes objects, fields and kernels.
func (c clusterPlan) describe(b *strings.Builder) {
	b.WriteString(c.String())
	if c.KernelsLater {
		ui.Writef(b, "  kernels of nodes and gateways: %s\n", kube.ErrLater)
	}
	for _, k := range c.Kernels {
		where := "node " + k.Node
		if k.Gateway != "" {
			where = "gateway of " + k.Gateway
		}
		ui.Writef(b, "  kernel of %s:\n", where)
		for _, step := range k.Steps {
			fmt.Fprintf(b, "    %s\n", strings.ReplaceAll(step, "\t", "  "))
		}
	}
}
