package network

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/inspect/diagnose"
	"liqonet.io/liqonet/internal/peering/plan"
)

func newDiagnose(env *cli.Env, local *cli.ClusterFlags, do cli.Operation[diagnose.Options, diagnose.Result]) *cobra.Command {
	var flags diagnose.Options
	var junit string
	cmd := &cobra.Command{
		Use:   "diagnose [PEER]",
		Short: "Find out why a peering does not work",
		Long: `Find out why a peering does not work. The command reads objects and the reports of nodes and gateways, and makes checks
in order of dependency. Each failure shows the observation, the likely cause and the fix, and the number of its consequences:
checks that fail because of it. Every check has a stable ID, which --explain describes.

With a remote cluster it checks both sides of their peering, and compares them. --probe also sends packets along all paths, like
network test. Checks for which you lack rights are skipped: level view is enough for most. The exit code is 3 if a check fails.`,
		Example: `  liqoctl network diagnose --context a

  # Both sides of a peering, with packets
  liqoctl network diagnose --context a --remote-context b --probe

  # What a check means
  liqoctl network diagnose --explain LQ-TUNNEL-HANDSHAKE

  # In CI
  liqoctl network diagnose b --context a --junit diagnosis.xml`,
		Args: cli.Arguments("[PEER]"),
	}
	clusters := cli.NewTwoClusters(cmd, local)
	cli.InstalledImageFlag(cmd, &flags.Image)
	ui.BoolFlag(cmd.Flags(), &flags.Probe, "probe", "send packets along all paths; needs a remote cluster, and level administer")
	ui.TextFlag(cmd.Flags(), &junit, "junit", "FILE", "file to write a JUnit report to", nil)
	act := cli.Action[diagnose.Options, diagnose.Result]{
		Do: alsoTo(&junit, do, diagnose.Result.JUnit), Text: describeDiagnosis, Wide: describeDiagnosisWide, Timeout: &flags.Timeout,
		Options: func(args []string) (o diagnose.Options, err error) {
			o = flags
			o.Peer = strings.Join(args, "")
			if o.Cluster, o.Remote, err = clusters.ConnectChosen(env); err == nil && o.Probe && o.Remote == nil {
				err = cli.Usagef("--probe needs a remote cluster")
			}
			return o, err
		},
		Verdict: func(r diagnose.Result) error { return cli.ErrDiagnosed.Unless(r.Passed) },
	}.Command(env, cmd)
	return explaining(env, act)
}

// explaining adds the flag that describes a check instead.
func explaining(env *cli.Env, cmd *cobra.Command) *cobra.Command {
	var id string
	ui.TextFlag(cmd.Flags(), &id, "explain", "CODE", "print what a check means and what to do, and connect to no cluster", nil)
	ui.Complete(cmd, "explain", cobra.FixedCompletions(checkIDs(), cobra.ShellCompDirectiveNoFileComp))
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if id != "" {
			return explain(env.Out, id)
		}
		return run(cmd, args)
	}
	return cmd
}

// explain writes the documentation of a check.
func explain(w io.Writer, id string) error {
	for _, c := range diagnose.Table() {
		if strings.EqualFold(c.ID, id) {
			_, err := io.WriteString(w, c.Page())
			return err
		}
	}
	err := cli.Usagef("--explain %q is no check", id)
	err.Advice = "liqoctl network diagnose -o json lists the checks; so does docs/checks"
	return err
}

// checkIDs returns the IDs of all checks.
func checkIDs() (ids []string) {
	for _, c := range diagnose.Table() {
		ids = append(ids, c.ID)
	}
	return ids
}

// describeDiagnosis formats the answer of `network diagnose` as text: what needs attention, and the number of checks.
func describeDiagnosis(b *strings.Builder, r diagnose.Result) { describeChecks(b, r, false) }

// describeDiagnosisWide adds the checks of each layer, consequences and reasons for skipped checks.
func describeDiagnosisWide(b *strings.Builder, r diagnose.Result) { describeChecks(b, r, true) }

func describeChecks(b *strings.Builder, r diagnose.Result, wide bool) {
	if wide {
		layerTable(b, r)
		fmt.Fprintln(b)
	}
	for _, state := range []diagnose.State{diagnose.Failed, diagnose.Warning} {
		for i, f := range r.Checks {
			if f.State != state {
				continue
			}
			ui.Writef(b, "%s: %s, %s\n  %s\n  likely cause: %s\n  to do: %s\n", state, f.ID, f.Subject(), f.Observed, f.Cause, f.Fix)
			again := slices.ContainsFunc(r.Checks[:i], func(before diagnose.Finding) bool { return before.ID == f.ID && before.State == state })
			switch following := consequencesOf(r, f.ID); {
			case len(following) == 0 || again:
			case wide:
				ui.Writef(b, "  consequences: %s\n", strings.Join(following, ", "))
			default:
				fmt.Fprintf(b, "  consequences: %s (-o wide lists them)\n", plan.Count(len(following), "failed check"))
			}
			ui.Writef(b, "  explain: liqoctl network diagnose --explain %s\n\n", f.ID)
		}
	}
	if wide {
		skipped := slices.DeleteFunc(slices.Clone(r.Checks), func(f diagnose.Finding) bool { return f.State != diagnose.Skipped })
		for _, alike := range grouped(skipped, func(f diagnose.Finding) string { return f.Subject() + ": " + f.Observed }) {
			ui.Writef(b, "skipped: %s: %s (%s)\n", alike[0].Subject(), alike[0].Observed, ui.Joined(alike, func(f diagnose.Finding) string { return f.ID }))
		}
	}
	if r.Passed && r.Count(diagnose.Passed) > 0 {
		ui.Writef(b, "%s: no fault found\n", strings.Join(clustersOf(r), " and "))
	}
	ui.Writef(b, "checks: %d passed, %d failed, %s, %s, %d skipped%s\n", r.Count(diagnose.Passed), r.Count(diagnose.Failed),
		plan.Count(r.Count(diagnose.Following), "consequence"), plan.Count(r.Count(diagnose.Warning), "warning"), r.Count(diagnose.Skipped), aboutSkipped(r, wide))
}

// aboutSkipped says how to have the checks that were skipped, or why they were.
func aboutSkipped(r diagnose.Result, wide bool) string {
	switch {
	case r.Count(diagnose.Skipped) == 0 || wide:
		return ""
	case len(clustersOf(r)) == 1:
		return " (--remote-context CONTEXT adds those of both sides)"
	}
	return " (-o wide has the reasons)"
}

// clustersOf returns the clusters of which checks were made.
func clustersOf(r diagnose.Result) (names []string) {
	for _, f := range r.Checks {
		names = appendNew(names, f.Cluster)
	}
	return names
}

// layerTable writes the results of the checks by layer.
func layerTable(b *strings.Builder, r diagnose.Result) {
	states := []diagnose.State{diagnose.Passed, diagnose.Failed, diagnose.Following, diagnose.Warning, diagnose.Skipped}
	rows := [][]string{{"LAYER", "PASSED", "FAILED", "FOLLOWING", "WARNINGS", "SKIPPED"}}
	for _, layer := range diagnose.Layers() {
		row := []string{string(layer)}
		for _, state := range states {
			n := 0
			for _, f := range r.Checks {
				if f.Layer == layer && f.State == state {
					n++
				}
			}
			row = append(row, cmp.Or(strings.TrimPrefix(fmt.Sprint(n), "0"), ui.Unknown))
		}
		rows = append(rows, row)
	}
	_ = ui.Table(b, rows) // a strings.Builder takes everything
}

// consequencesOf lists the checks that failed as a consequence of a failure.
func consequencesOf(r diagnose.Result, id string) (all []string) {
	for _, f := range r.Checks {
		if f.Follows == id {
			all = append(all, fmt.Sprintf("%s (%s)", f.ID, f.Subject()))
		}
	}
	return all
}
