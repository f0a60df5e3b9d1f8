package network

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/inspect/diagnose"
)

func newDiagnose(env *cli.Env, local *cli.ClusterFlags, do cli.Operation[diagnose.Options, diagnose.Result]) *cobra.Command {
	var flags diagnose.Options
	var junit string
	clusters := cli.TwoClusters{Local: local, Remote: cli.NewRemoteFlags()}
	cmd := &cobra.Command{
		Use:   "diagnose [PEER]",
		Short: "Find out why a peering does not work",
		Long: `Find out why a peering does not work. The command reads objects and the reports of nodes and gateways, and makes checks
in order of dependency. A failure has what was observed, the likely cause and what to do; checks that fail because of another
failure are listed with it. Every check has a stable ID and a page in docs/checks.

With a remote cluster it checks both sides of their peering, and compares them. --probe also sends packets along all paths, like
network test. Checks for which you lack rights are skipped: level view is enough for most. The exit code is 3 if a check fails.`,
		Example: `  liqoctl network diagnose --context a

  # Both sides of a peering, with packets
  liqoctl network diagnose --context a --remote-context b --probe

  # In CI
  liqoctl network diagnose b --context a --junit diagnosis.xml`,
		Args: cli.Arguments("[PEER]"),
	}
	clusters.Remote.Register(cmd, cmd.Flags())
	cli.ImageFlag(cmd, &flags.Image)
	ui.BoolFlag(cmd.Flags(), &flags.Probe, "probe", "send packets along all paths; needs a remote cluster, and level administer")
	ui.TextFlag(cmd.Flags(), &junit, "junit", "FILE", "file to write a JUnit report to", nil)
	return cli.Action[diagnose.Options, diagnose.Result]{
		Do: alsoTo(&junit, do, diagnose.Result.JUnit), Text: describeDiagnosis, Timeout: &flags.Timeout,
		Options: func(args []string) (o diagnose.Options, err error) {
			o = flags
			if len(args) > 0 {
				o.Peer = args[0]
			}
			if o.Cluster, o.Remote, err = clusters.ConnectChosen(env); err != nil || !o.Probe {
				return o, err
			}
			if o.Remote == nil {
				return o, cli.Usagef("--probe needs a remote cluster")
			}
			o.Image, err = cli.ImageOrDefault(env, o.Image)
			return o, err
		},
		Verdict: func(r diagnose.Result) error {
			if r.Passed {
				return nil
			}
			return cli.ErrDiagnosed
		},
	}.Command(env, cmd)
}

// describeDiagnosis formats the answer of `network diagnose` as text: a line for each layer, then the findings that
// need attention.
func describeDiagnosis(r diagnose.Result) string {
	var b strings.Builder
	layerTable(&b, r)
	for _, state := range []diagnose.State{diagnose.Failed, diagnose.Warning} {
		for i, f := range r.Checks {
			if f.State != state {
				continue
			}
			ui.Writef(&b, "\n%s: %s %s: %s\n", state, f.ID, f.Subject(), f.Observed)
			ui.Writef(&b, "  likely cause: %s\n  to do: %s\n  see: %s\n", f.Cause, f.Fix, diagnose.Page(f.ID))
			again := slices.ContainsFunc(r.Checks[:i], func(before diagnose.Finding) bool { return before.ID == f.ID && before.State == state })
			if following := consequencesOf(r, f.ID); following != "" && !again {
				ui.Writef(&b, "  following: %s\n", following)
			}
		}
	}
	if reasons := skippedBecause(r); len(reasons) > 0 {
		fmt.Fprintln(&b)
		for _, why := range reasons {
			ui.Writef(&b, "skipped: %s\n", why)
		}
	}
	ui.Writef(&b, "\n%d checks passed, %d failed, %d following, %d warnings, %d skipped\n", r.Count(diagnose.Passed), r.Count(diagnose.Failed),
		r.Count(diagnose.Following), r.Count(diagnose.Warning), r.Count(diagnose.Skipped))
	return b.String()
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
func consequencesOf(r diagnose.Result, id string) string {
	var all []string
	for _, f := range r.Checks {
		if f.Follows == id {
			all = append(all, fmt.Sprintf("%s (%s)", f.ID, f.Subject()))
		}
	}
	return strings.Join(all, ", ")
}

// skippedBecause returns a line for each reason why checks were skipped.
func skippedBecause(r diagnose.Result) (lines []string) {
	ids := make(map[string][]string)
	var reasons []string
	for _, f := range r.Checks {
		if f.State != diagnose.Skipped {
			continue
		}
		why := f.Subject() + ": " + f.Observed
		if ids[why] == nil {
			reasons = append(reasons, why)
		}
		ids[why] = append(ids[why], f.ID)
	}
	for _, why := range reasons {
		lines = append(lines, fmt.Sprintf("%s (%s)", why, strings.Join(ids[why], ", ")))
	}
	return lines
}
