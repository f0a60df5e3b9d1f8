package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/pathtest"
	"liqonet.io/liqonet/internal/progress"
)

var errCount = errors.New("must be a number of nodes, at least 1")

func newTest(env *cli.Env, local *cli.ClusterFlags, do cli.Operation[pathtest.Options, pathtest.Result]) *cobra.Command {
	var o pathtest.Options
	var junit string
	perf := perfFlags{streams: 8}
	clusters := cli.TwoClusters{Local: local, Remote: cli.NewRemoteFlags()}
	cmd := &cobra.Command{
		Use:   "test [PEER]",
		Short: "Send packets along all paths of a peering",
		Long: `Send packets along all paths of a peering. The command runs pods on the nodes of both clusters, and removes them
afterwards. From every node, a pod and the node itself send to up to 16 pods of the other cluster:

  tcp         100 kB, which must arrive unaltered
  udp, ping   a small packet (ping is skipped on nodes that do not allow it to programs without rights)
  full-size   a packet of the peering's MTU that must not be fragmented
  oversize    a packet of one byte more, which must be refused with an error
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
	clusters.Remote.Register(cmd, cmd.Flags())
	cli.ImageFlag(cmd, &o.Image)
	ui.AddFlag(cmd.Flags(), &o.Nodes, "nodes", "NUMBER", "nodes of each cluster that take part (default: all; with --perf, 1)", nodeCount)
	ui.AddFlag(cmd.Flags(), &o.Hold, "duration", "DURATION", "how long connections are kept open", ui.PositiveDuration)
	ui.TextFlag(cmd.Flags(), &junit, "junit", "FILE", "file to write a JUnit report to", nil)
	perf.register(cmd)
	return cli.Action[pathtest.Options, pathtest.Result]{
		Do: alsoTo(&junit, do, pathtest.Result.JUnit), Text: describePaths, Timeout: &o.Timeout,
		Options: func(args []string) (_ pathtest.Options, err error) {
			if len(args) > 0 {
				o.Peer = args[0]
			}
			if perf.perf {
				o.Streams = perf.streams
			}
			if o.Local, o.Remote, err = clusters.Connect(env); err != nil {
				return o, err
			}
			o.Image, err = cli.ImageOrDefault(env, o.Image)
			return o, err
		},
		Verdict: allPassed,
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

// allPassed returns an error if a check failed.
func allPassed(r pathtest.Result) error {
	if r.Passed {
		return nil
	}
	return hint.With(cli.ErrPaths, "liqoctl network status -o wide shows what gateways and nodes measure; see docs/troubleshooting.md")
}

func nodeCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, errCount
	}
	return n, nil
}

// describePaths formats the answer of `network test` as text.
func describePaths(r pathtest.Result) string {
	var b strings.Builder
	if len(r.Checks) == 0 && len(r.Performance) > 0 {
		return describePerformance(r)
	}
	byDirection := make(map[string][]pathtest.Check)
	var directions []string
	count := make(map[pathtest.State]int)
	for _, c := range r.Checks {
		name := c.From.Cluster + " to " + c.To.Cluster
		if byDirection[name] == nil {
			directions = append(directions, name)
		}
		byDirection[name] = append(byDirection[name], c)
		count[c.State]++
	}
	for _, name := range directions {
		ui.Writef(&b, "%s\n", name)
		pathMatrix(&b, byDirection[name])
		fmt.Fprintln(&b)
	}
	for _, c := range r.Checks {
		if c.State == pathtest.Failed {
			ui.Writef(&b, "failed: %s to %s: %s\n  seen: %s\n  expected: %s\n", c.From.String(), c.To.String(), c.Name, c.Seen, c.Expected)
		}
	}
	for _, why := range skippedChecks(r.Checks) {
		ui.Writef(&b, "skipped: %s\n", why)
	}
	for _, n := range r.Silent {
		ui.Writef(&b, "not tested, not Ready: %s\n", n.String())
	}
	if gap, ok := longestGap(r.Checks); ok {
		ui.Writef(&b, "open connections: longest time without an answer %s\n", gap)
	}
	ui.Writef(&b, "%d checks passed, %d failed, %d skipped (%s)\n", count[pathtest.Passed], count[pathtest.Failed], count[pathtest.Skipped], stageTimes(r.Stages))
	return b.String()
}

// pathMatrix writes the failed checks: a row for each sender, a column for each receiver.
func pathMatrix(w io.Writer, checks []pathtest.Check) {
	rows, columns := [][]string{{"FROM"}}, []pathtest.End{}
	row := make(map[pathtest.End]int)
	for _, c := range checks {
		if row[c.From] == 0 {
			row[c.From] = len(rows)
			rows = append(rows, []string{fmt.Sprintf("%s %s", c.From.Kind, c.From.Node)})
		}
		if !slices.Contains(columns, c.To) {
			columns = append(columns, c.To)
		}
	}
	slices.SortStableFunc(columns, compareReceivers)
	cells := make(map[[2]int]string)
	for _, c := range checks {
		at := [2]int{row[c.From], slices.Index(columns, c.To)}
		switch {
		case c.State == pathtest.Failed && cells[at] != "" && cells[at] != "passed":
			cells[at] += "," + string(c.Name)
		case c.State == pathtest.Failed:
			cells[at] = string(c.Name)
		case cells[at] == "":
			cells[at] = "passed"
		}
	}
	for i, to := range columns {
		title := to.Node
		if title == "" {
			title = string(to.Kind)
		}
		rows[0] = append(rows[0], title)
		for n := range rows[1:] {
			rows[n+1] = append(rows[n+1], ui.OrDash(cells[[2]int{n + 1, i}]))
		}
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
		if why := fmt.Sprintf("%s: %s", c.Name, c.Seen); c.State == pathtest.Skipped && !slices.Contains(reasons, why) {
			reasons = append(reasons, why)
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
