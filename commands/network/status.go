package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/seconds"
)

// statusOptions are the options of `network status`.
type statusOptions struct {
	status.Options
	output  ui.Format
	watch   bool
	wait    bool          // until all peerings have the state awaited
	await   health.State  // "": no wait
	timeout time.Duration // of the wait
	// coloured adds colours to the names of states.
	coloured bool
}

// statusActions read the peerings of a cluster, once or at every change.
type statusActions struct {
	once  func(context.Context, status.Options) ([]status.Peering, error)
	watch func(context.Context, status.Options, func([]status.Peering) error, func(error)) error
}

func newStatus(env *cli.Env, local *cli.ClusterFlags, do statusActions) *cobra.Command {
	o := statusOptions{output: ui.FormatText}
	var contexts []string
	var clusters cli.TwoClusters
	cmd := &cobra.Command{
		Use:   "status [PEER]",
		Short: "Show the health of a cluster's peerings",
		Long: `List the peerings of a cluster with state, loss and round trip, as measured by gateways and nodes.

With a remote cluster the command shows the peering of the two, as each of them sees it, and where their records differ. The
exit code is 3 if a peering is not healthy, or its two sides differ.

-o wide adds addresses, MTU and each tunnel; -o tree gateways, tunnels and nodes; -o mermaid draws them for Markdown. In clusters
of more than 12 nodes, tree and mermaid name only nodes that are not verified.

--watch keeps running until it is interrupted, also while the API server is unavailable. It prints a line for each change of a
state, a reason, the number of verified nodes or a warning; with -o json or yaml the whole answer after each report. --wait
returns when all peerings are healthy, or have the state of --for; the exit code is 3 if they do not reach it in time. If
liqonet is not installed in the namespace, the exit code is 1.`,
		Example: `  liqoctl network status --context a

  # Details, then every change
  liqoctl network status --context a -o wide --watch

  # Both sides of a peering
  liqoctl network status --context a --remote-context b

  # Gateways and tunnels of both sides
  liqoctl network status --context a --remote-context b -o tree

  # Several clusters
  liqoctl network status --contexts a,b,c

  # In a script
  liqoctl network status --context a b --wait --timeout 1m
  liqoctl network status --context a b --wait --for degraded
  liqoctl network status --context a -o jsonpath='{.peerings[?(@.peer=="b")].state}'`,
		Args: cli.Arguments("[PEER]"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			o.Peer = strings.Join(args, "")
			o.coloured = env.OutTerminal && env.Colours()
			if chosen(cmd, contexts) {
				return o.many(cmd.Context(), env, clusters, contexts, do)
			}
			if o.Cluster, o.Remote, err = clusters.ConnectChosen(env); err != nil {
				return err
			}
			return o.run(cmd.Context(), env, do)
		},
	}
	clusters = cli.NewTwoClusters(cmd, local)
	contextsFlag(cmd, &contexts, "show the peerings of these contexts as a matrix")
	ui.OutputFlag(cmd, &o.output, ui.FormatWide, ui.FormatTree, ui.FormatMermaid)
	ui.BoolFlag(cmd.Flags(), &o.watch, "watch,w", "keep running, and print every change")
	ui.BoolFlag(cmd.Flags(), &o.wait, "wait", "wait until all peerings are healthy, or have the state of --for")
	ui.EnumFlag(cmd, &o.await, "for", "state to wait for, with --wait (default healthy)", health.States()...)
	cli.TimeoutFlag(cmd.Flags(), &o.timeout)
	cmd.Flags().Lookup("timeout").Usage = "time limit of --wait"
	cmd.MarkFlagsMutuallyExclusive("watch", "wait")
	return cmd
}

// many prints the peerings of several contexts.
func (o statusOptions) many(ctx context.Context, env *cli.Env, clusters cli.TwoClusters, contexts []string, do statusActions) error {
	plain := o.output == ui.FormatText || o.output.Structured()
	if one := clusters.Local.Config; one.Cluster != "" || one.User != "" {
		return cli.Usagef("--contexts excludes --cluster and --user, which are of one cluster")
	}
	if o.Peer != "" || o.watch || o.wait || o.await != "" || !plain {
		return cli.Usagef("--contexts excludes a peer, --watch, --wait, --for and -o wide, tree and mermaid")
	}
	all, err := clusters.Local.ConnectAll(env, contexts)
	if err != nil {
		return err
	}
	return o.printMany(ctx, env, all, do)
}

func (o statusOptions) run(ctx context.Context, env *cli.Env, do statusActions) error {
	if o.wait {
		o.await = cmp.Or(o.await, health.Healthy)
	}
	switch {
	case o.watch && o.output == ui.FormatMermaid:
		return cli.Usagef("--watch has no diagrams: use another format than mermaid")
	case !o.wait && o.await != "":
		return cli.Usagef("--for needs --wait")
	case o.wait && slices.Contains(health.States(), health.State(o.Peer)):
		env.Progress.Note(fmt.Sprintf("waiting for peer %q; to wait for that state: --wait --for %[1]s", o.Peer))
	}
	switch {
	case o.watch:
		return o.printChanges(ctx, env, do)
	case o.wait:
		return o.waitFor(ctx, env, do)
	}
	all, err := do.once(ctx, o.Options)
	if err != nil {
		return err
	}
	answer := o.answer(all)
	err = o.print(env.Out, answer)
	switch {
	case err != nil:
		return err
	case !answer.Healthy:
		return cli.ErrUnhealthy
	case len(answer.Disagreements) > 0:
		return hint.With(cli.ErrDisagree, "liqoctl network connect, with the same contexts, prints what differs; with --update it repairs it")
	}
	return nil
}

// errReached ends a watch.
var errReached = errors.New("reached")

// waitFor waits until all peerings, and one at least, have a state, and prints what they have in the end.
func (o statusOptions) waitFor(ctx context.Context, env *cli.Env, do statusActions) error {
	bounded, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	var last *statusAnswer // nil: the cluster has not answered yet
	err := do.watch(bounded, o.Options, func(all []status.Peering) error {
		last = new(o.answer(all))
		if len(all) == 0 || slices.ContainsFunc(all, func(p status.Peering) bool { return p.State != o.await }) {
			return nil
		}
		return errReached
	}, env.Lost("wait"))
	if err != nil && !errors.Is(err, errReached) {
		return err
	}
	if ctx.Err() != nil {
		return cli.ErrInterrupted
	}
	if last != nil {
		if err := o.print(env.Out, *last); err != nil {
			return err
		}
	}
	if err == nil {
		return fmt.Errorf("not %s within %s: %w", o.await, o.timeout, cli.ErrUnhealthy)
	}
	return nil
}

// answer adds to peerings what only the whole answer has.
func (o statusOptions) answer(all []status.Peering) statusAnswer {
	unhealthy := func(p status.Peering) bool { return p.State != health.Healthy }
	a := statusAnswer{Healthy: !slices.ContainsFunc(all, unhealthy), Peerings: slices.Clone(all)}
	for i, p := range a.Peerings {
		if unhealthy(p) {
			a.Peerings[i].Next = o.next(p.Peer)
		}
	}
	if o.Remote != nil && len(all) == 2 {
		a.Disagreements = status.Disagreements(all[0], all[1])
	}
	return a
}

// statusAnswer is the answer of `network status` for programs.
type statusAnswer struct {
	Healthy  bool             `json:"healthy"`  // all peerings are
	Peerings []status.Peering `json:"peerings"` // with a remote cluster: one peering in both clusters
	// Disagreements are differences between the two clusters.
	Disagreements []status.Disagreement `json:"disagreements,omitempty"`
}

func (o statusOptions) print(w io.Writer, a statusAnswer) error {
	if o.output.Structured() {
		return o.output.Encode(w, a)
	}
	var b strings.Builder
	switch {
	case o.output == ui.FormatMermaid:
		_, err := io.WriteString(w, mermaid(a.Peerings))
		return err
	case len(a.Peerings) == 0:
		fmt.Fprintln(&b, "no peerings")
	case o.output == ui.FormatTree:
		o.tree(&b, a.Peerings)
	case o.output == ui.FormatWide:
		if err := o.details(&b, a.Peerings); err != nil {
			return err
		}
		fmt.Fprintln(&b)
	default:
		if err := o.columns().Print(&b, o.output, a.Peerings); err != nil {
			return err
		}
	}
	o.notes(&b, a, o.output != ui.FormatTree)
	if next := o.explanation(a.Peerings); next != "" {
		ui.Writef(&b, "next: %s\n", next)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// notes writes reasons, warnings and disagreements.
func (o statusOptions) notes(b *strings.Builder, a statusAnswer, reasons bool) {
	for _, p := range a.Peerings {
		subject := o.subject(p)
		if p.Reason != "" && reasons {
			ui.Writef(b, "%s is %s: %s\n", subject, p.State, p.Reason)
		}
		for _, w := range p.Warnings {
			ui.Writef(b, "%s: warning: %s\n", subject, w)
		}
	}
	for _, d := range a.Disagreements {
		local, remote := a.Peerings[0].Cluster, a.Peerings[1].Cluster
		ui.Writef(b, "%s and %s disagree on %s: %s in %s; %s in %s\n", local, remote, d.About, d.Local, local, d.Remote, remote)
	}
}

// explanation returns the command that explains the states of all peerings; "" if they are healthy.
func (o statusOptions) explanation(all []status.Peering) string {
	unhealthy := slices.DeleteFunc(slices.Clone(all), func(p status.Peering) bool { return p.State == health.Healthy })
	switch len(unhealthy) {
	case 0:
		return ""
	case 1:
		return o.next(unhealthy[0].Peer)
	}
	return o.next("")
}

// next returns the command that explains the state of a peering, or of all (""). With both clusters, that of all is
// used.
func (o statusOptions) next(peer string) string {
	command := "liqoctl network diagnose "
	if o.Remote == nil && peer != "" {
		command += kube.ShellWord(peer) + " "
	}
	return strings.TrimSpace(command + kube.Flags(o.Cluster, o.Remote))
}

// subject returns the name of a peering in one cluster.
func (o statusOptions) subject(p status.Peering) string {
	if o.Remote != nil {
		return p.Cluster + " to " + p.Peer
	}
	return p.Peer
}

// paint adds a colour to a state that was escaped for terminals.
func (o statusOptions) paint(state string) string {
	if !o.coloured {
		return state
	}
	return ui.StateColour(state)
}

// columns are those of the table of peerings.
func (o statusOptions) columns() ui.Columns[status.Peering] {
	type side = status.Peering
	reported := func(cell func(status.Totals) string) func(side) string {
		return func(p side) string {
			if t := p.Totals(); t.ReportAge != nil {
				return cell(t)
			}
			return ""
		}
	}
	all := ui.Columns[side]{
		{Title: "CLUSTER", Cell: func(p side) string { return p.Cluster }},
		{Title: "PEER", Cell: func(p side) string { return p.Peer }},
		{Title: "STATE", Cell: func(p side) string { return string(p.State) }, Paint: o.paint},
		{Title: "GATEWAYS", Cell: healthyGateways},
		{Title: "NODES", Cell: func(p side) string { return fmt.Sprintf("%d/%d", p.Nodes.Ready, p.Nodes.Total) }},
		{Title: "RTT", Cell: func(p side) string { return known(p.Totals().RTT, ui.RoundTrip) }},
		{Title: "LOSS", Cell: reported(func(t status.Totals) string { return ui.Percent(t.Loss) })},
		{Title: "TRAFFIC RX/TX", Cell: reported(func(t status.Totals) string { return ui.ByteCount(t.RxBytes) + "/" + ui.ByteCount(t.TxBytes) })},
	}
	if o.Remote == nil {
		return all[1:]
	}
	return all
}

// healthyGateways formats how many of a peering's gateways are healthy.
func healthyGateways(p status.Peering) string {
	healthy := 0
	for _, g := range p.Gateways {
		if g.State == health.Healthy {
			healthy++
		}
	}
	return fmt.Sprintf("%d/%d", healthy, len(p.Gateways))
}

// known formats a duration; "" if it is not known.
func known(d *seconds.Duration, format func(time.Duration) string) string {
	if d == nil {
		return ""
	}
	return format(time.Duration(*d))
}

// keyAge formats the age of a key pair; "" if it is not known.
func keyAge(created time.Time) string {
	if created.IsZero() {
		return ""
	}
	return ui.Age(max(time.Since(created), 0))
}

func exposedCell(x status.ExposedHost) string {
	text := x.Host.String()
	if x.ReachedAt.IsValid() {
		text += " as " + x.ReachedAt.String()
	}
	if !x.Served {
		text += " (not served)"
	}
	return text
}

// size formats an MTU in bytes; "" if it is not known (0).
func size(mtu int) string {
	if mtu == 0 {
		return ""
	}
	return fmt.Sprint(mtu)
}
