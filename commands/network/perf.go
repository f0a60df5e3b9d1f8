package network

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/pathtest"
	"liqonet.io/liqonet/internal/pathtest/probe"
)

// perfFlags are the flags of a measurement.
type perfFlags struct {
	perf    bool
	streams int
}

func (f *perfFlags) register(cmd *cobra.Command) {
	ui.BoolFlag(cmd.Flags(), &f.perf, "perf", "measure throughput, round trips and connections a second")
	ui.AddFlag(cmd.Flags(), &f.streams, "streams", "NUMBER", "TCP streams at once, with --perf", ui.Between(1, probe.MaxStreams))
	cmd.MarkFlagsMutuallyExclusive("perf", "duration")
	cmd.MarkFlagsMutuallyExclusive("perf", "junit")
}

// measure is a figure for the tunnel and for the direct path.
type measure struct {
	title    string
	of       func(probe.Figures) float64
	text     func(float64) string
	compared func(ratio float64) string
}

func measures(streams int) []measure {
	type figures = probe.Figures
	trip := func(seconds float64) string { return fmt.Sprintf("%.2fms", seconds*1e3) }
	share := func(ratio float64) string { return fmt.Sprintf("%.0f%% of direct", 100*ratio) }
	times := func(ratio float64) string { return fmt.Sprintf("%.1f x as long", ratio) }
	return []measure{
		{"1 stream", func(f figures) float64 { return f.Stream }, ui.BitRate, share},
		{fmt.Sprintf("%d streams", streams), func(f figures) float64 { return f.Streams }, ui.BitRate, share},
		{"round trip p50", func(f figures) float64 { return f.P50 }, trip, times},
		{"round trip p90", func(f figures) float64 { return f.P90 }, trip, times},
		{"round trip p99", func(f figures) float64 { return f.P99 }, trip, times},
		{"connections", func(f figures) float64 { return f.Connections }, func(v float64) string { return fmt.Sprintf("%.0f/s", v) }, share},
	}
}

// row returns the title, the two figures and their comparison.
func (m measure) row(p pathtest.Performance) []string {
	text := func(f *probe.Figures) string {
		if f == nil {
			return ui.Unknown
		}
		return m.text(m.of(*f))
	}
	compared := ui.Unknown
	if p.Tunnel != nil && p.Direct != nil && m.of(*p.Direct) > 0 {
		compared = m.compared(m.of(*p.Tunnel) / m.of(*p.Direct))
	}
	return []string{m.title, text(p.Tunnel), text(p.Direct), compared}
}

// describePerformance formats the answer of `network test --perf` as text.
func describePerformance(b *strings.Builder, r pathtest.Result) {
	for _, p := range r.Performance {
		ui.Writef(b, "%s on %s to %s on %s\n", p.From.Cluster, p.From.Node, p.To.Cluster, p.To.Node)
		rows := [][]string{{"", "TUNNEL", "DIRECT", "TUNNEL IS"}}
		for _, m := range measures(p.Streams) {
			rows = append(rows, m.row(p))
		}
		_ = ui.Table(b, rows) // a strings.Builder takes everything
		if p.Failed != "" {
			ui.Writef(b, "failed: the pods do not reach each other: %s\n", p.Failed)
		}
		if p.Unreached != "" {
			ui.Writef(b, "not compared: the nodes do not reach each other outside of the tunnel: %s\n", p.Unreached)
		}
		fmt.Fprintln(b)
	}
	ui.Writef(b, "(%s)\n", stageTimes(r.Stages))
}
