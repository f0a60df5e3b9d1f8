package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/peering"
)

// statusOptions are the options of `network status`.
type statusOptions struct {
	peering.StatusOptions
	output format
	watch  bool
	// wait is the state to wait for; "": none.
	wait    health.State
	timeout time.Duration // of the wait
	// coloured has states in colour, beside their names.
	coloured bool
}

// statusActions look at the peerings of a cluster, once or at every change.
type statusActions struct {
	once  func(context.Context, peering.StatusOptions) ([]peering.PeeringStatus, error)
	watch func(context.Context, peering.StatusOptions, func([]peering.PeeringStatus) error, func(error)) error
	// translation looks at the cluster's translation service; nil: there is none.
	translation func(context.Context, peering.StatusOptions) (*peering.TranslationStatus, error)
}

func newNetworkStatus(env *Env, local *clusterFlags, do statusActions) *cobra.Command {
	o := statusOptions{output: formatText}
	cmd := &cobra.Command{
		Use:   "status [PEER]",
		Short: "Show the health of a cluster's peerings",
		Long: `Show the health of a cluster's peerings, one line for each: what its gateway and nodes measure, and how old the
measurements are. The exit code is 0 if all peerings are healthy, and 3 if one is not.

--watch keeps running until it is interrupted, also while the API server is unavailable. --wait returns when the peerings
reach a state, with exit code 0, or 3 if they do not reach it in time. If liqonet is not installed in the namespace,
the exit code is 1.`,
		Example: `  liqoctl network status --context a

  # Details, and every change
  liqoctl network status --context a -o wide --watch

  # In a script
  liqoctl network status --context a b --wait --timeout 1m
  liqoctl network status --context a -o jsonpath='{.peerings[?(@.peer=="b")].state}'`,
		Args: arguments("[PEER]"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) > 0 {
				o.Peer = args[0]
			}
			if o.Side.Cluster, err = local.connect(env); err != nil {
				return err
			}
			o.coloured = env.OutTerminal && env.colours()
			return o.run(cmd.Context(), env, do)
		},
	}
	outputFlag(cmd, &o.output)
	boolFlag(cmd.Flags(), &o.watch, "watch,w", "keep running, and print every change")
	enumFlag(cmd, &o.wait, "wait", "wait until all peerings have this state", health.States()...)
	cmd.Flags().Lookup("wait").NoOptDefVal = string(health.Healthy)
	timeoutFlag(cmd.Flags(), &o.timeout)
	cmd.Flags().Lookup("timeout").Usage = "time limit of --wait"
	cmd.MarkFlagsMutuallyExclusive("watch", "wait")
	return cmd
}

func (o statusOptions) run(ctx context.Context, env *Env, do statusActions) error {
	switch {
	case o.watch:
		return o.follow(ctx, env, do)
	case o.wait != "":
		return o.await(ctx, env, do)
	}
	all, err := do.once(ctx, o.StatusOptions)
	if err != nil {
		return err
	}
	answer, err := o.answer(ctx, do, all)
	if err != nil {
		return err
	}
	if err := o.print(env.Out, answer); err != nil {
		return err
	}
	if !answer.Healthy {
		return errUnhealthy
	}
	return nil
}

// errReached ends a watch.
var errReached = errors.New("reached")

// await waits until all peerings, and one at least, have a state, and prints what they have in the end.
func (o statusOptions) await(ctx context.Context, env *Env, do statusActions) error {
	bounded, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	var last []peering.PeeringStatus
	err := do.watch(bounded, o.StatusOptions, func(all []peering.PeeringStatus) error {
		last = all
		if len(all) == 0 || slices.ContainsFunc(all, func(p peering.PeeringStatus) bool { return p.State != o.wait }) {
			return nil
		}
		return errReached
	}, func(err error) {
		env.progress.Warn(withoutRequests(err).Error(), "the wait goes on when the cluster answers again")
	})
	if err != nil && !errors.Is(err, errReached) {
		return err
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	answer, e := o.answer(ctx, do, last)
	if e := errors.Join(e, o.print(env.Out, answer)); e != nil {
		return e
	}
	if err == nil {
		return fmt.Errorf("not %s within %s: %w", o.wait, o.timeout, errUnhealthy)
	}
	return nil
}

// follow prints an answer at every change, until a signal ends it.
func (o statusOptions) follow(ctx context.Context, env *Env, do statusActions) error {
	show := func(all []peering.PeeringStatus) error {
		answer, err := o.answer(ctx, do, all)
		if err != nil {
			return err
		}
		if err := o.separate(env, time.Now()); err != nil {
			return err
		}
		return o.print(env.Out, answer)
	}
	lost := func(err error) {
		env.progress.Warn(withoutRequests(err).Error(), "the watch goes on when the cluster answers again")
	}
	if err := do.watch(ctx, o.StatusOptions, show, lost); err != nil {
		return err
	}
	return errInterrupted
}

// answer is how peerings do, and the translation service.
func (o statusOptions) answer(ctx context.Context, do statusActions, all []peering.PeeringStatus) (statusAnswer, error) {
	service, err := do.translation(ctx, o.StatusOptions)
	return statusAnswer{healthy(all), all, service}, err
}

// separate begins the next answer of a watch: on an empty screen where somebody looks, else after a line that
// tells the time.
func (o statusOptions) separate(env *Env, now time.Time) (err error) {
	switch {
	case o.output == formatYAML:
		_, err = io.WriteString(env.Out, "---\n")
	case o.output.structured():
	case env.OutTerminal && !env.dumb():
		_, err = io.WriteString(env.Out, clearScreen)
	default:
		_, err = fmt.Fprintf(env.Out, "%s\n", now.UTC().Format(time.RFC3339))
	}
	return err
}

// statusAnswer is the answer of `network status` for programs.
type statusAnswer struct {
	Healthy     bool                       `json:"healthy"` // all peerings are
	Peerings    []peering.PeeringStatus    `json:"peerings"`
	Translation *peering.TranslationStatus `json:"translation,omitempty"`
}

func (o statusOptions) print(w io.Writer, a statusAnswer) error {
	if o.output.structured() {
		return o.output.encode(w, a)
	}
	if err := o.printPeerings(w, a.Peerings); err != nil || a.Translation == nil {
		return err
	}
	s := *a.Translation
	until := "not known"
	if !s.AuthorityEnds.IsZero() {
		until = s.AuthorityEnds.UTC().Format(time.DateOnly)
	}
	_, err := fmt.Fprintf(w, "translation: %s, %d/%d pods ready, certificate authority until %s\n", visibleCell(s.URL), s.PodsReady, s.Pods, until)
	return err
}

func (o statusOptions) printPeerings(w io.Writer, all []peering.PeeringStatus) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no peerings")
		return err
	}
	rows := [][]string{slices.Concat(statusHeading, o.extra(wideHeading))}
	for _, p := range all {
		rows = append(rows, slices.Concat(statusRow(p), o.extra(wideRow(p))))
	}
	if err := table(w, rows, o.paint); err != nil {
		return err
	}
	for _, p := range all {
		if p.Reason == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s is %s: %s\n", visibleCell(p.Peer), visibleCell(string(p.State)), visibleCell(p.Reason)); err != nil {
			return err
		}
	}
	return nil
}

// paint colours the column of states.
func (o statusOptions) paint(column int, cell string) string {
	if !o.coloured || statusHeading[min(column, len(statusHeading)-1)] != "STATE" {
		return cell
	}
	return stateColour(cell)
}

// extra returns columns that only the wide table has.
func (o statusOptions) extra(columns []string) []string {
	if o.output != formatWide {
		return nil
	}
	return columns
}

var (
	statusHeading = []string{"PEER", "ROLE", "STATE", "ENDPOINT", "HANDSHAKE", "RTT", "LOSS", "RX/TX", "NODES", "WIREGUARD", "OVERLAY"}
	wideHeading   = []string{"MTU", "PATHS", "DRIFT", "REPORT", "GATEWAY", "PEER CIDRS", "EXPOSED"}
)

func statusRow(p peering.PeeringStatus) []string {
	loss, traffic := percent(p.Loss), bytes(p.RxBytes)+"/"+bytes(p.TxBytes)
	if p.ReportAge < 0 {
		loss, traffic = unknown, unknown
	}
	return []string{
		p.Peer, orDash(string(p.Role)), string(p.State), orDash(p.Endpoint), age(p.HandshakeAge), roundTrip(p.RTT), loss, traffic,
		fmt.Sprintf("%d/%d", p.NodesReady, p.NodesTotal), orDash(string(p.Implementation)), orDash(string(p.Overlay)),
	}
}

func wideRow(p peering.PeeringStatus) []string {
	seen := make([]string, len(p.Mappings))
	for i, m := range p.Mappings {
		seen[i] = fmt.Sprintf("%s %s", m.What, m.Seen)
		if !m.Identity {
			seen[i] += fmt.Sprintf(" (%s)", m.Real)
		}
	}
	exposed := make([]string, len(p.Exposed))
	for i, x := range p.Exposed {
		exposed[i] = x.Host.String()
		if x.Seen.IsValid() {
			exposed[i] += " as " + x.Seen.String()
		}
		if !x.Served {
			exposed[i] += " (not served)"
		}
	}
	drift := unknown
	if p.ReportAge >= 0 {
		drift = fmt.Sprint(p.Drifts())
	}
	return []string{
		fmt.Sprint(p.MTU), paths(p), drift, age(p.ReportAge), orDash(p.Pod), orDash(strings.Join(seen, ", ")), orDash(strings.Join(exposed, ", ")),
	}
}

// paths are the sizes of packets that the gateways' path carries, and the narrowest of the nodes' to their gateway.
func paths(p peering.PeeringStatus) string {
	nodes := 0
	for _, n := range p.Nodes {
		if n.PathMTU > 0 && (nodes == 0 || n.PathMTU < nodes) {
			nodes = n.PathMTU
		}
	}
	size := func(mtu int) string {
		if mtu == 0 {
			return unknown
		}
		return fmt.Sprint(mtu)
	}
	return size(p.PathMTU) + ", nodes " + size(nodes)
}

func healthy(all []peering.PeeringStatus) bool {
	return !slices.ContainsFunc(all, func(p peering.PeeringStatus) bool { return p.State != health.Healthy })
}
