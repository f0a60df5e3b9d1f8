package network

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/pathtest"
	"liqonet.io/liqonet/internal/pathtest/probe"
)

var errStreams = fmt.Errorf("must be a number of streams, from 1 to %d", probe.MaxStreams)

// perfFlags are the flags of a measurement.
type perfFlags struct {
	perf    bool
	streams int
}

func (f *perfFlags) register(cmd *cobra.Command) {
	ui.BoolFlag(cmd.Flags(), &f.perf, "perf", "measure throughput, round trips and connections a second")
	ui.AddFlag(cmd.Flags(), &f.streams, "streams", "NUMBER", "TCP streams at once, with --perf", streamCount)
	cmd.MarkFlagsMutuallyExclusive("perf", "duration")
	cmd.MarkFlagsMutuallyExclusive("perf", "junit")
}

func streamCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > probe.MaxStreams {
		return 0, errStreams
	}
	return n, nil
}

// measure is a figure for the tunnel and for the direct path, with the ratio of both.
type measure struct {
	title string
	of    func(probe.Figures) float64
	ratio func(pathtest.Ratios) float64
	text  func(float64) string
}

func measures(streams int) []measure {
	type figures = probe.Figures
	type ratios = pathtest.Ratios
	trip := func(seconds float64) string { return fmt.Sprintf("%.2fms", seconds*1e3) }
	return []measure{
		{"1 stream", func(f figures) float64 { return f.Stream }, func(r ratios) float64 { return r.Stream }, ui.BitRate},
		{fmt.Sprintf("%d streams", streams), func(f figures) float64 { return f.Streams }, func(r ratios) float64 { return r.Streams }, ui.BitRate},
		{"round trip p50", func(f figures) float64 { return f.P50 }, func(r ratios) float64 { return r.P50 }, trip},
		{"round trip p90", func(f figures) float64 { return f.P90 }, func(r ratios) float64 { return r.P90 }, trip},
		{"round trip p99", func(f figures) float64 { return f.P99 }, func(r ratios) float64 { return r.P99 }, trip},
		{"connections", func(f figures) float64 { return f.Connections }, func(r ratios) float64 { return r.Connections }, func(v float64) string { return fmt.Sprintf("%.0f/s", v) }},
	}
}

// cells returns the two figures and the ratio as text.
func (m measure) cells(p pathtest.Performance) (tunnel, direct, ratio string) {
	text := func(f *probe.Figures) string {
		if f == nil {
			return ui.Unknown
		}
		return m.text(m.of(*f))
	}
	if ratio = ui.Unknown; p.Ratios != nil {
		ratio = fmt.Sprintf("%.2f", m.ratio(*p.Ratios))
	}
	return text(p.Tunnel), text(p.Direct), ratio
}

// describePerformance formats the answer of `network test --perf` as text.
func describePerformance(r pathtest.Result) string {
	var b strings.Builder
	for _, p := range r.Performance {
		ui.Writef(&b, "%s on %s to %s on %s\n", p.From.Cluster, p.From.Node, p.To.Cluster, p.To.Node)
		rows := [][]string{{"", "TUNNEL", "DIRECT", "RATIO"}}
		for _, m := range measures(p.Streams) {
			tunnel, direct, ratio := m.cells(p)
			rows = append(rows, []string{m.title, tunnel, direct, ratio})
		}
		_ = ui.Table(&b, rows) // a strings.Builder takes everything
		if p.Failed != "" {
			ui.Writef(&b, "failed: the pods do not reach each other: %s\n", p.Failed)
		}
		if p.Unreached != "" {
			ui.Writef(&b, "no ratio: the nodes do not reach each other outside of the tunnel: %s\n", p.Unreached)
		}
		fmt.Fprintln(&b)
	}
	ui.Writef(&b, "(%s)\n", stageTimes(r.Stages))
	return b.String()
}
