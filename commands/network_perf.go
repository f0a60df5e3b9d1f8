package commands

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/pathtest"
	"liqonet.io/liqonet/internal/pathtest/probe"
	"liqonet.io/liqonet/internal/svg"
	"liqonet.io/liqonet/internal/units"
)

var (
	errStreams = fmt.Errorf("must be a number of streams, from 1 to %d", probe.MaxStreams)
	errPicture = errors.New("must end in .svg or .html")
)

// perfFlags are the flags of a measurement.
type perfFlags struct {
	perf    bool
	streams int
	picture string
}

func (f *perfFlags) register(cmd *cobra.Command) {
	boolFlag(cmd.Flags(), &f.perf, "perf", "measure throughput, round trips and connections a second")
	addFlag(cmd.Flags(), &f.streams, "streams", "NUMBER", "TCP streams at once, with --perf", streamCount)
	textFlag(cmd.Flags(), &f.picture, "picture", "FILE", "file to write a picture of the figures to, FILE.svg or FILE.html; with --perf", pictureFile)
	cmd.MarkFlagsMutuallyExclusive("perf", "duration")
	cmd.MarkFlagsMutuallyExclusive("perf", "junit")
}

// options is how many streams are to be measured; 0: nothing is.
func (f *perfFlags) options() (streams int, err error) {
	switch {
	case f.perf:
		return f.streams, nil
	case f.picture != "":
		return 0, usagef("--picture needs --perf")
	}
	return 0, nil
}

func streamCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > probe.MaxStreams {
		return 0, errStreams
	}
	return n, nil
}

func pictureFile(name string) error {
	if !slices.Contains([]string{".svg", ".html"}, filepath.Ext(name)) {
		return errPicture
	}
	return nil
}

// draw is the picture of a result, in the format of its file.
func (f *perfFlags) draw(r pathtest.Result) ([]byte, error) {
	picture := drawPerformance(r.Performance)
	if filepath.Ext(f.picture) == ".html" {
		return []byte(picture.Page("Performance of a peering", describePerformance(r))), nil
	}
	return []byte(picture.String()), nil
}

// measure is a figure: of the tunnel, of the direct path, and the ratio of both.
type measure struct {
	title string
	of    func(probe.Figures) float64
	ratio func(pathtest.Ratios) float64
	text  func(float64) string
}

func measures(streams int) []measure {
	type figures = probe.Figures
	type ratios = pathtest.Ratios
	trip := func(ns float64) string { return fmt.Sprintf("%.2fms", ns/1e6) }
	return []measure{
		{"1 stream", func(f figures) float64 { return f.Stream }, func(r ratios) float64 { return r.Stream }, units.Rate},
		{fmt.Sprintf("%d streams", streams), func(f figures) float64 { return f.Streams }, func(r ratios) float64 { return r.Streams }, units.Rate},
		{"round trip p50", func(f figures) float64 { return float64(f.P50) }, func(r ratios) float64 { return r.P50 }, trip},
		{"round trip p90", func(f figures) float64 { return float64(f.P90) }, func(r ratios) float64 { return r.P90 }, trip},
		{"round trip p99", func(f figures) float64 { return float64(f.P99) }, func(r ratios) float64 { return r.P99 }, trip},
		{"connections", func(f figures) float64 { return f.Connections }, func(r ratios) float64 { return r.Connections }, func(v float64) string { return fmt.Sprintf("%.0f/s", v) }},
	}
}

// cells are the two figures and the ratio, as text.
func (m measure) cells(p pathtest.Performance) (tunnel, direct, ratio string) {
	text := func(f *probe.Figures) string {
		if f == nil {
			return unknown
		}
		return m.text(m.of(*f))
	}
	if ratio = unknown; p.Ratios != nil {
		ratio = fmt.Sprintf("%.2f", m.ratio(*p.Ratios))
	}
	return text(p.Tunnel), text(p.Direct), ratio
}

// describePerformance is the answer of `network test --perf` for people.
func describePerformance(r pathtest.Result) string {
	var b strings.Builder
	for _, p := range r.Performance {
		writef(&b, "%s on %s to %s on %s\n", p.From.Cluster, p.From.Node, p.To.Cluster, p.To.Node)
		rows := [][]string{{"", "TUNNEL", "DIRECT", "RATIO"}}
		for _, m := range measures(p.Streams) {
			tunnel, direct, ratio := m.cells(p)
			rows = append(rows, []string{m.title, tunnel, direct, ratio})
		}
		_ = table(&b, rows) // a strings.Builder takes everything
		if p.Failed != "" {
			writef(&b, "failed: the pods do not reach each other: %s\n", p.Failed)
		}
		if p.Unreached != "" {
			writef(&b, "no ratio: the nodes do not reach each other outside of the tunnel: %s\n", p.Unreached)
		}
		fmt.Fprintln(&b)
	}
	writef(&b, "(%s)\n", stageTimes(r.Stages))
	return b.String()
}

// Sizes of the picture, in pixels.
const (
	barsLeft  = 170
	barsMost  = 420 // of the longer bar of a pair
	barHeight = 14
	barsRow   = 3*barHeight + 4
)

// drawPerformance draws figures as bars: the tunnel's, and below it that of the direct path.
func drawPerformance(all []pathtest.Performance) *svg.Picture {
	p := &svg.Picture{Width: barsLeft + barsMost + 220, Height: 20}
	for _, one := range all {
		p.Text(20, p.Height+8, "title", fmt.Sprintf("%s on %s to %s on %s", one.From.Cluster, one.From.Node, one.To.Cluster, one.To.Node), 90)
		p.Height += 24
		for _, m := range measures(one.Streams) {
			p.Text(20, p.Height+barHeight+4, "", m.title, 20)
			tunnel, direct, ratio := m.cells(one)
			most := 0.0
			for _, f := range []*probe.Figures{one.Tunnel, one.Direct} {
				if f != nil {
					most = max(most, m.of(*f))
				}
			}
			bar(p, one.Tunnel, m, most, 0, "tunnel "+tunnel+", ratio "+ratio)
			bar(p, one.Direct, m, most, 1, "direct "+direct)
			p.Height += barsRow
		}
		p.Height += 20
	}
	return p
}

// bar draws one of a pair of bars, which is empty where there is no figure.
func bar(p *svg.Picture, f *probe.Figures, m measure, most float64, row int, text string) {
	class := []string{"bar", "other"}[row]
	length, y := 0, p.Height+row*(barHeight+2)
	if f != nil && most > 0 {
		length = int(barsMost * m.of(*f) / most)
	}
	p.Box(barsLeft, y, length, barHeight, class)
	p.Text(barsLeft+length+8, y+barHeight-3, "small", text, 40)
}
