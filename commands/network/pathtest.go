package network

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/pathtest"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/seconds"
)

func newTest(env *cli.Env, local *cli.ClusterFlags, do cli.Operation[pathtest.Options, pathtest.Result]) *cobra.Command {
	var o pathtest.Options
	var junit string
	perf := perfFlags{streams: 8}
	cmd := &cobra.Command{
		Use:   "test [PEER]",
		Short: "Send packets along all paths of a peering",
		Long: `Send packets along all paths of a peering. The command runs pods on the nodes of both clusters, and removes them
afterwards. From every node, a pod and the node itself send to up to 16 pods of the other cluster:

  tcp         100 kB, which must arrive unaltered
  udp, ping   a small packet (ping: skipped where net.ipv4.ping_group_range excludes it)
  full-size   a packet of the peering's MTU that must not be fragmented
  oversize    a packet of one byte more, which must return an ICMP error
  fragments   a datagram of 4000 bytes
  source      the far end must see the translated address of the sender
  connection  with --duration: a TCP connection must stay open

They also reach the pods by a Service of their own cluster: by its ClusterIP, and from nodes by its NodePort. The exit code is
3 if a check fails. The command needs the rights of level administer in both clusters.

--perf measures instead, with pods on one node of each cluster: how much arrives by one TCP stream and by several at once, round trips
of small messages, and connections a second. It measures in both directions, through the tunnel and then outside of it, from node to
node (TCP port 6094), and prints both with their ratio; there is no ratio where nodes do not reach each other. Each of these
measurements sends as fast as it can for about 10 seconds: other traffic suffers meanwhile.`,
		Example: `  liqoctl network test --context a --remote-context b

  # In CI: three nodes of each cluster, and a gateway is restarted meanwhile
  liqoctl network test --context a --remote-context b --nodes 3 --duration 1m --junit paths.xml

  # What the tunnel costs
  liqoctl network test --context a --remote-context b --perf`,
		Args: cli.Arguments("[PEER]"),
	}
	clusters := cli.NewTwoClusters(cmd, local)
	cli.InstalledImageFlag(cmd, &o.Image)
	ui.AddFlag(cmd.Flags(), &o.Nodes, "nodes", "NUMBER", "nodes of each cluster that take part (default: all; with --perf, 1)", ui.Between(1, math.MaxInt32))
	ui.AddFlag(cmd.Flags(), &o.Hold, "duration", "DURATION", "how long connections are kept open", ui.PositiveDuration)
	ui.TextFlag(cmd.Flags(), &junit, "junit", "FILE", "file to write a JUnit report to", nil)
	perf.register(cmd)
	return cli.Action[pathtest.Options, pathtest.Result]{
		Do: alsoTo(&junit, do, pathtest.Result.JUnit), Timeout: &o.Timeout,
		Text: func(b *strings.Builder, r pathtest.Result) { describePaths(b, r, o) },
		Wide: func(b *strings.Builder, r pathtest.Result) { describePathsWide(b, r, o) },
		Options: func(args []string) (_ pathtest.Options, err error) {
			o.Peer = strings.Join(args, "")
			if perf.perf {
				o.Streams = perf.streams
			}
			o.Local, o.Remote, err = clusters.Connect(env)
			return o, err
		},
		Verdict: func(r pathtest.Result) error { return cli.ErrPaths.Unless(r.Passed) },
	}.Command(env, cmd)
}

// alsoTo has an operation write its result to a file as well, encoded; "": to none.
func alsoTo[O, R any](file *string, do cli.Operation[O, R], encode func(R) ([]byte, error)) cli.Operation[O, R] {
	return func(ctx context.Context, o O, r progress.Reporter) (R, error) {
		result, err := do(ctx, o, r)
		if err != nil || *file == "" {
			return result, err
		}
		content, err := encode(result)
		if err != nil {
			return result, err
		}
		return result, os.WriteFile(*file, content, 0o600)
	}
}

// describePaths formats the answer of `network test` as text. o names the clusters.
func describePaths(b *strings.Builder, r pathtest.Result, o pathtest.Options) {
	if len(r.Checks) == 0 && len(r.Performance) > 0 {
		describePerformance(b, r)
		return
	}
	for _, way := range grouped(r.Checks, func(c pathtest.Check) [2]string { return [2]string{c.From.Cluster, c.To.Cluster} }) {
		pathMatrix(b, way)
		fmt.Fprintln(b)
	}
	for _, f := range failures(r.Checks) {
		ui.Writef(b, "failed: %s\n", f)
	}
	pathSummary(b, r)
	if next := traceFailed(r.Checks, o); next != "" {
		fmt.Fprintf(b, "next: %s\n", next)
	}
}

// describePathsWide is describePaths with each failed check.
func describePathsWide(b *strings.Builder, r pathtest.Result, o pathtest.Options) {
	describePaths(b, r, o)
	for _, c := range r.Checks {
		if c.State == pathtest.Failed {
			ui.Writef(b, "\n%s to %s: %s\n  seen: %s\n  expected: %s\n", c.From.String(), c.To.String(), c.Name, c.Seen, c.Expected)
		}
	}
}

// failures returns a text for each path with failed checks, by what was seen.
func failures(checks []pathtest.Check) (all []string) {
	type failure struct {
		from, to pathtest.End
		seen     string
	}
	failed := slices.DeleteFunc(slices.Clone(checks), func(c pathtest.Check) bool { return c.State != pathtest.Failed })
	for _, alike := range grouped(failed, func(c pathtest.Check) failure { return failure{c.From, c.To, c.Seen} }) {
		c := alike[0]
		text := fmt.Sprintf("%s to %s: %s: %s", c.From.String(), c.To.String(), ui.Joined(alike, func(c pathtest.Check) string { return string(c.Name) }), c.Seen)
		if len(alike) == 1 && !strings.Contains(c.Seen, "no answer") {
			text += ", expected " + c.Expected
		}
		all = append(all, text)
	}
	return all
}

// pathSummary writes what was not tested, and how many checks passed.
func pathSummary(b *strings.Builder, r pathtest.Result) {
	count := make(map[pathtest.State]int)
	for _, c := range r.Checks {
		count[c.State]++
	}
	for _, n := range r.Silent {
		ui.Writef(b, "not tested, not Ready: %s\n", n.String())
	}
	if gap, ok := longestGap(r.Checks); ok {
		ui.Writef(b, "open connections: longest time without an answer %s\n", gap)
	}
	because := ""
	if reasons := skippedChecks(r.Checks); len(reasons) > 0 {
		because = " (" + strings.Join(reasons, "; ") + ")"
	}
	var took seconds.Duration
	for _, s := range r.Stages {
		took += s.Took
	}
	ui.Writef(b, "%d passed, %d failed, %d skipped%s; %s\n",
		count[pathtest.Passed], count[pathtest.Failed], count[pathtest.Skipped], because, ui.Seconds(time.Duration(took)))
}

// traceFailed returns the command that looks closer at the first failed check; "": none failed. Packets are followed
// between the nodes, as the test's pods are gone.
func traceFailed(checks []pathtest.Check, o pathtest.Options) string {
	i := slices.IndexFunc(checks, func(c pathtest.Check) bool { return c.State == pathtest.Failed })
	if i < 0 {
		return ""
	}
	from, to := checks[i].From, checks[i].To
	if to.Node == "" {
		return "liqoctl network diagnose " + kube.Flags(o.Local, o.Remote)
	}
	flags := kube.Flags(o.Local, o.Remote)
	if from.Cluster != checks[0].From.Cluster { // the first direction begins in the local cluster
		flags = kube.Flags(o.Remote, o.Local)
	}
	return fmt.Sprintf("liqoctl network trace %s %s --protocol icmp --live %s", kube.ShellWord(from.Node), kube.ShellWord(to.Node), flags)
}

// pathMatrix writes the checks of a direction: a row for each sender, a column for each receiver. A cell has the check
// that failed, or the number of several.
func pathMatrix(w io.Writer, checks []pathtest.Check) {
	type path struct{ from, to pathtest.End }
	var senders, receivers []pathtest.End
	tested := make(map[path][]string) // names of the checks that failed
	for _, c := range checks {
		senders, receivers = appendNew(senders, c.From), appendNew(receivers, c.To)
		names := tested[path{c.From, c.To}]
		if c.State == pathtest.Failed {
			names = append(names, string(c.Name))
		}
		tested[path{c.From, c.To}] = names
	}
	slices.SortStableFunc(receivers, compareReceivers)
	rows := [][]string{{checks[0].From.Cluster + " to " + checks[0].To.Cluster}}
	for _, to := range receivers {
		rows[0] = append(rows[0], cmp.Or(to.Node, string(to.Kind)))
	}
	for _, from := range senders {
		row := []string{fmt.Sprintf("%s %s", from.Kind, from.Node)}
		for _, to := range receivers {
			switch failed, known := tested[path{from, to}]; {
			case !known:
				row = append(row, ui.Unknown)
			case len(failed) == 0:
				row = append(row, "ok")
			case len(failed) == 1:
				row = append(row, failed[0])
			default:
				row = append(row, fmt.Sprintf("%d failed", len(failed)))
			}
		}
		rows = append(rows, row)
	}
	_ = ui.Table(w, rows) // a strings.Builder takes everything
}

// compareReceivers sorts pods by node, and Services after them.
func compareReceivers(a, b pathtest.End) int {
	if (a.Kind == pathtest.Pod) != (b.Kind == pathtest.Pod) {
		if a.Kind == pathtest.Pod {
			return -1
		}
		return 1
	}
	return strings.Compare(a.Node+string(a.Kind), b.Node+string(b.Kind))
}

// skippedChecks returns the reasons for skipped checks, without duplicates.
func skippedChecks(checks []pathtest.Check) (reasons []string) {
	for _, c := range checks {
		if c.State == pathtest.Skipped {
			reasons = appendNew(reasons, fmt.Sprintf("%s: %s", c.Name, c.Seen))
		}
	}
	return reasons
}

// longestGap returns the longest gap on open connections; false: there were none.
func longestGap(checks []pathtest.Check) (gap time.Duration, ok bool) {
	for _, c := range checks {
		if c.Gap > 0 {
			gap, ok = max(gap, time.Duration(c.Gap)), true
		}
	}
	return gap.Round(time.Millisecond), ok
}
