package network

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/inspect/trace"
	"liqonet.io/liqonet/internal/inspect/trace/probe"
	"liqonet.io/liqonet/internal/setting"
	"liqonet.io/liqonet/ipam/translate"
)

// errUntraced is no verdict.
var errUntraced = errors.New("unknown whether packets cross: not all hops answered")

func newTrace(env *cli.Env, local *cli.ClusterFlags, do cli.Operation[trace.Options, trace.Result]) *cobra.Command {
	o := trace.Options{Protocol: trace.TCP}
	cmd := &cobra.Command{
		Use:   "trace FROM TO",
		Short: "Follow packets between two clusters hop by hop",
		Long: `Follow packets between two clusters hop by hop, in both directions: the rules, routes, gateways and tunnels that they
take, the translation of addresses, the sizes that fit, and where and why packets are dropped.

FROM is a pod (NAMESPACE/NAME), a node or an address of the local cluster. TO is a pod or a node of the remote cluster, or an
address or a Service (svc/NAMESPACE/NAME) of the local cluster that leads to the remote one.

The path is computed from the records, and from what nodes and gateways report. Level view is enough for nodes and addresses. For
pods, Services and NetworkPolicies you need the right to read them, as the ClusterRole view of Kubernetes gives it. The exit
code is 3 if packets do not cross.

--live also sends one packet with the sender's address from the sender's node (a TCP SYN, a UDP datagram or an echo request), and
shows the routes and nftables chains that the packet and its answer pass, and the rule that drops them. It needs the rights of
level administer in both clusters. -o wide has the rules, routes, gateways and sizes of each hop, and the hops of the answer.`,
		Example: `  liqoctl network trace shop/web-0 shop/db-0 --port 5432 --context a --remote-context b

  # By the address or the Service that a pod uses
  liqoctl network trace shop/web-0 10.71.1.5 --port 53 --protocol udp --context a --remote-context b
  liqoctl network trace shop/web-0 svc/shop/db --context a --remote-context b

  # With a packet
  liqoctl network trace shop/web-0 shop/db-0 --port 5432 --live --context a --remote-context b`,
		Args: cli.Arguments("FROM", "TO"),
	}
	clusters := cli.NewTwoClusters(cmd, local)
	ui.EnumFlag(cmd, &o.Protocol, "protocol", "protocol of the packets", trace.TCP, trace.UDP, trace.ICMP)
	ui.AddFlag(cmd.Flags(), &o.Port, "port", "PORT", "port of the receiver, or of the Service", setting.Port)
	ui.BoolFlag(cmd.Flags(), &o.Live, "live", "also send a packet and ask the kernels; needs level administer")
	return cli.Action[trace.Options, trace.Result]{
		Do: do, Text: describeTrace, Wide: describeTraceWide, Timeout: &o.Timeout,
		Options: func(args []string) (_ trace.Options, err error) {
			o.From, o.To = args[0], args[1]
			o.Local, o.Remote, err = clusters.Connect(env)
			return o, err
		},
		Verdict: func(r trace.Result) error {
			switch {
			case r.Crosses:
				return nil
			case r.Live != nil && r.Live.Unknown != "" && r.There.Dropped() == "" && r.Back.Dropped() == "":
				return errUntraced
			}
			return cli.ErrTraced
		},
	}.Command(env, cmd)
}

// describeTrace formats the answer of `network trace` as text: a line for each hop.
func describeTrace(b *strings.Builder, r trace.Result) {
	dropped, verdict := droppedAt(r), "ok"
	switch {
	case dropped != "" || r.Live != nil && !r.Crosses && r.Live.Unknown == "":
		verdict = "dropped"
	case !r.Crosses:
		verdict = "unknown"
	}
	ui.Writef(b, "%s: %s to %s, %s: %d hops, answer %d hops\n", verdict, endName(r.From), endName(r.To), r.String(), len(r.There), len(r.Back))
	rows := make([][]string, 0, len(r.There))
	for i, h := range r.There {
		packet := h.Packet
		if h.Translated != nil {
			packet = *h.Translated
		}
		rows = append(rows, []string{fmt.Sprintf("  %d", i+1), fmt.Sprintf("%s %s of %s", h.Kind, h.Name, h.Cluster), sentTo(packet), remappedBy(h)})
	}
	_ = ui.Table(b, rows) // a strings.Builder takes everything
	for _, note := range slices.Concat(r.From.Notes, r.To.Notes) {
		ui.Writef(b, "note: %s\n", note)
	}
	switch {
	case dropped != "":
		ui.Writef(b, "%s\n", dropped)
	case r.Live == nil:
		fmt.Fprintln(b, "computed from records and reports: --live also sends a packet, and finds drops by other programs")
	}
	if r.Live != nil && len(r.Live.Places) > 0 {
		describeVerdict(b, r.Live)
	}
	fmt.Fprintln(b, "routes, gateways, sizes and the answer's hops: -o wide")
}

// endName names the sender or the receiver.
func endName(e trace.End) string {
	name := fmt.Sprintf("%s %s", endKind(e), cmp.Or(e.Name, e.Address.String()))
	if e.Cluster != "" {
		name += " of " + e.Cluster
	}
	return name
}

func endKind(e trace.End) string {
	if e.Kind == translate.Exposed {
		return "exposed host"
	}
	return cmp.Or(string(e.Kind), "address")
}

// remappedBy returns which addresses of a packet a hop remaps.
func remappedBy(h trace.Hop) string {
	t := h.Translated
	switch {
	case t == nil:
		return "not remapped"
	case t.Source != h.Packet.Source && t.Destination != h.Packet.Destination:
		return "source and destination remapped"
	case t.Source != h.Packet.Source:
		return "source remapped"
	}
	return "destination remapped"
}

// droppedAt returns where packets are dropped, and why; "": nowhere.
func droppedAt(r trace.Result) string {
	for _, way := range []trace.Way{r.There, r.Back} {
		if why := way.Dropped(); why != "" {
			h := way[len(way)-1]
			return fmt.Sprintf("dropped at %s %s of %s: %s", h.Kind, h.Name, h.Cluster, why)
		}
	}
	return ""
}

// describeTraceWide formats the answer with the rules and routes of each hop.
func describeTraceWide(b *strings.Builder, r trace.Result) {
	describeEnd(b, "from", r.From)
	describeEnd(b, "to", r.To)
	ui.Writef(b, "%s, computed from records and reports\n", r.String())
	hop := 0
	for _, way := range []struct {
		title string
		hops  trace.Way
	}{{"there", r.There}, {"back", r.Back}} {
		if len(way.hops) > 0 {
			ui.Writef(b, "\n%s\n", way.title)
		}
		for _, h := range way.hops {
			hop++
			describeHop(b, hop, h)
		}
	}
	ui.Writef(b, "\n%s\n", cmp.Or(droppedAt(r), "no drop found"))
	describeLive(b, r.Live)
}

// describeLive writes the observations of a packet.
func describeLive(b *strings.Builder, l *trace.Live) {
	if l == nil || len(l.Places) == 0 {
		return
	}
	start := time.Time{}
	if len(l.Places[0].There) > 0 {
		start = l.Places[0].There[0].Time
	}
	ui.Writef(b, "\nseen in the kernels: %s %s -> %s, sent by %s\n", l.Packet.Protocol, strings.TrimSuffix(l.Packet.From.String(), ":0"), strings.TrimSuffix(l.Packet.To.String(), ":0"), l.Places[0].Name)
	for _, p := range l.Places {
		ui.Writef(b, "    %s %s of %s\n", string(p.Kind), p.Name, p.Cluster)
		switch {
		case p.Out != "":
			fact(b, "kernel", cmp.Or(p.Detour, p.Route)+", out by "+p.Out)
		case p.Route != "":
			fact(b, "kernel", "refuses it: "+cmp.Or(p.Detour, p.Route))
		}
		for _, s := range p.There {
			describeSighting(b, "packet", s, start)
		}
		for _, s := range p.Back {
			describeSighting(b, "answer", s, start)
		}
		for _, problem := range p.Errors {
			fact(b, "not asked", problem)
		}
	}
	describeVerdict(b, l)
}

// describeVerdict writes how far the packet and its answer came.
func describeVerdict(b *strings.Builder, l *trace.Live) {
	known := func(state *bool) bool { return state != nil && *state }
	switch {
	case l.Unknown != "":
		ui.Writef(b, "unknown whether it arrived: %s\n", l.Unknown)
		if l.Last != "" {
			ui.Writef(b, "%s\n", l.Last)
		}
	case known(l.Answered):
		ui.Writef(b, "arrived, and was answered\n")
	case known(l.Arrived) && l.Last != "":
		ui.Writef(b, "arrived; of its answer: %s\n", l.Last)
	case known(l.Arrived):
		ui.Writef(b, "arrived; no answer was seen\n")
	default:
		ui.Writef(b, "did not arrive: %s\n", cmp.Or(l.Last, "no kernel has seen it"))
	}
}

func describeSighting(b *strings.Builder, what string, s probe.Sighting, start time.Time) {
	text := sentTo(trace.Addresses{Source: s.From, Destination: s.To})
	if !start.IsZero() {
		text += fmt.Sprintf(" at %+.1f ms", float64(s.Time.Sub(start).Microseconds())/1000)
	}
	text += ", in by " + cmp.Or(s.In, ui.Unknown)
	switch left := sentTo(trace.Addresses{Source: s.LeftFrom, Destination: s.LeftTo}); {
	case s.Out != "":
		text += ", left as " + left + " by " + s.Out
	case s.LeftTo.IsValid():
		text += ", delivered here as " + left
	}
	fact(b, what, text)
	fact(b, "chains", strings.Join(s.Chains, ", "))
	fact(b, "DROPPED", s.Dropped)
}

func describeEnd(b *strings.Builder, word string, e trace.End) {
	ui.Writef(b, "%-5s ", word)
	ui.Writef(b, "%s ", endKind(e))
	if e.Name != "" {
		ui.Writef(b, "%s, ", e.Name)
	}
	ui.Writef(b, "%s", e.Address.String())
	if e.Node != "" && e.Node != e.Name {
		ui.Writef(b, " on node %s", e.Node)
	}
	if e.Cluster != "" {
		ui.Writef(b, " of %s", e.Cluster)
	}
	if e.Seen.IsValid() && e.Seen != e.Address {
		ui.Writef(b, ", which the other cluster reaches by %s", e.Seen.String())
	}
	fmt.Fprintln(b)
	for _, note := range e.Notes {
		ui.Writef(b, "      %s\n", note)
	}
}

func describeHop(b *strings.Builder, number int, h trace.Hop) {
	title := fmt.Sprintf("%s %s of %s", h.Kind, h.Name, h.Cluster)
	if h.Kind == trace.Gateway {
		title += " on node " + h.Node
	}
	ui.Writef(b, "%2d  %s\n", number, title)
	fact(b, "packet", sentTo(h.Packet))
	if t := h.Translated; t != nil {
		fact(b, "translated", sentTo(*t))
	}
	if h.Rule != "" {
		fact(b, "lookup", h.Rule)
		ui.Writef(b, "      %-10s %s\n", "", h.Route)
	}
	for _, m := range h.Members {
		if m.Used {
			fact(b, "by", m.Name)
		} else {
			fact(b, "not by", m.Name+": "+m.Why)
		}
	}
	fact(b, "out", h.Out)
	if h.Outer != nil {
		fact(b, "outside", sentTo(*h.Outer))
	}
	fact(b, "endpoint", h.Endpoint)
	fact(b, "state", h.State)
	switch {
	case h.MTU > 0 && h.PathMTU > 0:
		fact(b, "size", fmt.Sprintf("up to %d bytes; path MTU outside %d, measured", h.MTU, h.PathMTU))
	case h.MTU > 0:
		fact(b, "size", fmt.Sprintf("up to %d bytes", h.MTU))
	}
	for _, note := range h.Notes {
		fact(b, "note", note)
	}
	fact(b, "DROPPED", h.Dropped)
}

// fact writes a line about a hop; an empty text is left out.
func fact(b *strings.Builder, about, text string) {
	if text != "" {
		ui.Writef(b, "      %-10s %s\n", about, text)
	}
}

// sentTo formats the addresses of a packet.
func sentTo(a trace.Addresses) string {
	text := func(a netip.Addr) string {
		if !a.IsValid() {
			return ui.Unknown
		}
		return a.String()
	}
	return text(a.Source) + " -> " + text(a.Destination)
}
