package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"liqonet.io/liqonet/bench/path"
	"liqonet.io/liqonet/bench/report"
	"liqonet.io/liqonet/internal/testbed/clusters"
)

// crowds returns the cluster sizes to measure.
func crowds(nodes, pods int) [][2]int {
	if nodes > 0 {
		return [][2]int{{nodes, pods}}
	}
	return [][2]int{{10, pods}, {100, pods}, {1000, pods}}
}

// runScale measures a gateway in clusters of several sizes, each from its start.
func runScale(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench scale", flag.ContinueOnError)
	kinds := kindFlags(flags)
	nodes := flags.Int("nodes", 0, "`NUMBER` of nodes; 0: 10, 100 and 1000")
	pods := flags.Int("pods", 50, "`NUMBER` of pods of each, with addresses of a pool: a route each")
	pause := flags.Duration("pause", 20*time.Millisecond, "`DURATION` between two pods that are replaced")
	sample := flags.Duration("sample", time.Minute, "`DURATION` of a sample")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || *pods < 1 || *pause <= 0 || *sample <= 0 {
		return fmt.Errorf("arguments %q: want numbers and durations of more than nothing", args)
	}
	_, err := io.WriteString(out, "| nodes | pods | first routes, s | report to route: median, ms | p99, ms | of a core | of a core at rest | memory, MiB |\n"+
		"|---|---|---|---|---|---|---|---|\n")
	for _, size := range crowds(*nodes, *pods) {
		c := crowd{kinds: kinds(), nodes: size[0], pods: size[1], pause: *pause, sample: *sample}
		err = errors.Join(err, c.measure(ctx, out))
	}
	return err
}

// settling is how long pods are replaced before a sample.
const settling = 5 * time.Second

// crowd is a cluster to measure.
type crowd struct {
	kinds       clusters.Kinds
	nodes, pods int           // pods of each node
	pause       time.Duration // between two pod replacements
	sample      time.Duration
}

// measure writes one row.
func (c crowd) measure(ctx context.Context, out io.Writer) (err error) {
	bed := path.NewBed(ctx, c.kinds)
	defer func() { err = errors.Join(err, bed.Close()) }()
	if _, err := bed.Liqonet(1); err != nil {
		return err
	}
	many, first, err := bed.Join(ctx, c.nodes, c.pods)
	if err != nil {
		return err
	}
	// The gateway lists its whole kernel state again after so many changes. Pods replaced meanwhile wait for that.
	if _, _, err := many.Replace(ctx, c.pause, settling); err != nil {
		return err
	}
	took, busy, err := many.Replace(ctx, c.pause, c.sample)
	if err != nil {
		return err
	}
	_, rest, err := many.Replace(ctx, 2*c.sample, c.sample)
	if err != nil {
		return err
	}
	memory, err := many.Memory()
	if err != nil {
		return err
	}
	var ms []float64
	for _, t := range took {
		ms = append(ms, t.Seconds()*1000)
	}
	_, err = fmt.Fprintf(out, "| %d | %d | %.1f | %.1f | %.1f | %.3f | %.3f | %d |\n", c.nodes, c.nodes*c.pods, first.Seconds(),
		report.Quantile(ms, 0.5), report.Quantile(ms, 0.99), busy, rest, memory>>20)
	return err
}
