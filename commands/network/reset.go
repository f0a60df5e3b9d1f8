package network

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/image"
	"liqonet.io/liqonet/internal/peering/removal"
)

func newReset(env *cli.Env, local *cli.ClusterFlags, do cli.Operation[removal.ResetOptions, removal.ResetResult]) *cobra.Command {
	var o removal.ResetOptions
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Remove liqonet from a cluster",
		Long: `Remove liqonet from a cluster. The command returns when nothing remains in the kernels of the nodes and in the API
server. It refuses while the cluster has peerings; --force removes them too, in this cluster only.

At the end it runs a pod on every node that checks the kernel for links, routes, rules and tables. Where liqonet is not
installed any more, because its namespace was deleted by hand, or with --force, the pods also remove them.
--verify-only checks API server and kernels, and removes nothing. The exit code is 3 if state remains; with
--verify-only, also if a node cannot be checked.

On a terminal the command asks for confirmation, unless --yes is given.`,
		Example: `  liqoctl network reset --context a

  # In a script, with the peerings that remain
  liqoctl network reset --context a --force --yes

  # Check that nothing remains
  liqoctl network reset --context a --verify-only`,
		Args: cli.Arguments(),
	}
	ui.BoolFlag(cmd.Flags(), &o.Force, "force", "remove the cluster's side of its peerings too")
	ui.BoolFlag(cmd.Flags(), &o.VerifyOnly, "verify-only", "list the liqonet state of the cluster and remove nothing")
	ui.TextFlag(cmd.Flags(), &o.Image, "image", "IMAGE", "container image of the pods that check nodes (default: the installation's, else the image of this release)", ui.ImageName)
	cli.PodFlags(cmd, &o.Pods)
	cmd.MarkFlagsMutuallyExclusive("verify-only", "force")
	act := cli.Action[removal.ResetOptions, removal.ResetResult]{
		Do: do, Plan: removal.PlanReset, Text: func(b *strings.Builder, r removal.ResetResult) { describeReset(b, r, o.VerifyOnly) },
		Timeout: &o.Timeout, BySize: true, Ignored: []string{"wait", "skip-validation"},
		Options: func([]string) (_ removal.ResetOptions, err error) {
			if o.Cluster, err = local.Connect(env); err != nil {
				return o, err
			}
			if o.Image == "" {
				o.Image, o.NoImage = image.DefaultReference(env.Build)
			}
			return o, nil
		},
		Ask: func(o removal.ResetOptions) string {
			if o.VerifyOnly {
				return ""
			}
			return fmt.Sprintf("Remove liqonet from cluster %q?", o.Cluster.Context)
		},
		Verdict: func(r removal.ResetResult) error { return verdictOnRemains(r.Remains, o.VerifyOnly) },
	}.Command(env, cmd)
	act.MarkFlagsMutuallyExclusive("verify-only", "dry-run")
	return act
}

// verdictOnRemains accepts nodes that cannot be verified, unless only verification was requested: reset has warned
// about them.
func verdictOnRemains(r *removal.Remains, verifyOnly bool) error {
	if r == nil || r.None() && (len(r.Silent) == 0 || !verifyOnly) {
		return nil
	}
	return hint.With(cli.ErrRemains, "remove it with liqoctl network reset, which empties kernels where liqonet is not installed any more")
}

// describeReset formats the answer of `network reset` as text.
func describeReset(b *strings.Builder, r removal.ResetResult, verifyOnly bool) {
	switch {
	case verifyOnly:
	case !r.Changed:
		ui.Writef(b, "%s: liqonet is not installed: nothing changed\n", r.Context)
	default:
		if len(r.Peerings) > 0 {
			describeRemoval(b, r.Removed)
		}
		ui.Writef(b, "%s: liqonet removed\n", r.Context)
	}
	if r.Remains != nil {
		describeRemains(b, *r.Remains)
	}
}

func describeRemains(b *strings.Builder, r removal.Remains) {
	for _, o := range r.Objects {
		ui.Writef(b, "remains: %s\n", o)
	}
	for _, n := range r.Nodes {
		for _, what := range n.Left {
			ui.Writef(b, "remains on node %s: %s\n", n.Name, what)
		}
	}
	if len(r.Silent) > 0 {
		ui.Writef(b, "not checked, not Ready: node %s\n", strings.Join(r.Silent, ", "))
	}
	if r.None() && len(r.Silent) == 0 {
		ui.Writef(b, "verified: nothing remains in the API server and on %d of %d nodes\n", len(r.Nodes), len(r.Nodes))
	}
}
