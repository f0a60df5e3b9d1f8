package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"liqonet.io/liqonet/bench/load"
	"liqonet.io/liqonet/bench/path"
	"liqonet.io/liqonet/bench/report"
)

// weather is how a line treats packets, in each direction.
type weather struct {
	Name  string `json:"name"`
	netem string // as tc-netem(8) takes it; all have the line's rate
	// slow is how much longer than others it takes TCP to find its speed.
	slow int
	// late is how long a packet may be on its way.
	late time.Duration
}

// lineRate is that of every line. A queue holds a twentieth of a second of it, where nothing else is said.
const lineRate = "rate 20mbit"

// weathers are those that are measured. Without another delay, a line has one of five milliseconds.
func weathers() []weather {
	const near, far = "limit 130 delay 5ms", "limit 1400"
	all := []weather{{Name: "calm", netem: near}}
	for _, loss := range []string{"1%", "5%", "10%", "20%"} {
		all = append(all, weather{Name: loss + " loss", netem: near + " loss " + loss})
	}
	return append(all,
		weather{Name: "10 ms delay, 1 ms jitter", netem: "limit 130 delay 10ms 1ms"},
		weather{Name: "100 ms delay, 10 ms jitter", netem: "limit 300 delay 100ms 10ms", slow: 1},
		weather{Name: "700 ms delay, 20 ms jitter", netem: far + " delay 700ms 20ms", slow: 4, late: time.Second},
		weather{Name: "10% reordered by 10 ms", netem: "limit 130 delay 10ms reorder 90%"},
		weather{Name: "5% duplicated", netem: near + " duplicate 5%"},
		weather{Name: "queue of 1.5 s", netem: "limit 2500 delay 5ms", slow: 1, late: 2 * time.Second},
	)
}

// weatherReport is what was measured on one line.
type weatherReport struct {
	weather
	Metrics  []report.Metric `json:"metrics"`
	States   []string        `json:"states"`   // of the peering while packets flowed, each once
	Renewals int             `json:"renewals"` // of the tunnels
}

// Metrics of a line.
const (
	metricTCP = iota
	metricUDP
)

// UDP packets are sent at a tenth of the line's rate.
const (
	pacedSize  = 1200
	pacedPause = 5 * time.Millisecond
)

// weatherPlan says what is measured and how long.
type weatherPlan struct {
	plan
	names []string // none: all
}

func runWeather(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench weather", flag.ContinueOnError)
	p := weatherPlan{plan: plan{only: []string{tunnelAlone, byLiqonet}}}
	kinds := kindFlags(flags)
	only := flags.String("only", "", "measure `LINES` whose names contain one of these words alone, with commas between")
	format := flags.String("o", "text", "`FORMAT`: text, a Markdown table, or json")
	flags.IntVar(&p.rounds, "rounds", 3, "`NUMBER` of samples of each path on each line")
	flags.DurationVar(&p.sample, "sample", 10*time.Second, "`DURATION` of a sample; longer on lines of a long delay")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || p.rounds < 1 || p.sample <= 0 || *format != "text" && *format != "json" {
		return fmt.Errorf("arguments %q: want rounds and durations of more than nothing, and format text or json", args)
	}
	p.kinds = kinds()
	if *only != "" {
		p.names = strings.Split(*only, ",")
	}
	all, err := p.measure(ctx, os.Stderr)
	if err != nil {
		return err
	}
	if *format == "json" {
		return json.NewEncoder(os.Stdout).Encode(all)
	}
	return writeWeather(os.Stdout, all)
}

// measure builds both paths once, and changes the weather of their lines.
func (p weatherPlan) measure(ctx context.Context, progress io.Writer) (all []weatherReport, err error) {
	bed := path.NewBed(ctx, p.kinds)
	defer func() { err = errors.Join(err, bed.Close()) }()
	ways, names, err := p.build(bed)
	if err != nil {
		return nil, err
	}
	for _, w := range weathers() {
		if len(p.names) > 0 && !slices.ContainsFunc(p.names, func(s string) bool { return strings.Contains(w.Name, s) }) {
			continue
		}
		_, _ = fmt.Fprintln(progress, w.Name)
		r, err := p.line(ctx, bed, w, ways, names)
		if err != nil {
			return all, fmt.Errorf("line %q: %w", w.Name, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// line measures one line, in rounds that begin with another path each.
func (p weatherPlan) line(ctx context.Context, bed *path.Bed, w weather, ways map[string]load.Way, names []string) (weatherReport, error) {
	r := weatherReport{weather: w, Metrics: []report.Metric{
		metricTCP: {Name: "TCP", Unit: "Mbit/s", Samples: map[string][]float64{}},
		metricUDP: {Name: "UDP", Unit: "share that arrives", Samples: map[string][]float64{}},
	}}
	if err := bed.SetLine("netem " + w.netem + " " + lineRate); err != nil {
		return r, err
	}
	before := bed.Renewals()
	for round := range p.rounds {
		for i := range names {
			name := names[(round+i)%len(names)]
			if err := p.sampleLine(ctx, ways[name], w, r.Metrics, name); err != nil {
				return r, fmt.Errorf("path %q: %w", name, err)
			}
			if name != byLiqonet {
				continue
			}
			verdicts, err := bed.Verdicts(ctx)
			if err != nil {
				return r, err
			}
			for _, v := range verdicts {
				r.States = append(r.States, strings.TrimSuffix(string(v.State)+": "+v.Why, ": "))
			}
		}
	}
	slices.Sort(r.States)
	r.States = slices.Compact(r.States)
	r.Renewals = bed.Renewals() - before
	return r, nil
}

func (p weatherPlan) sampleLine(ctx context.Context, way load.Way, w weather, metrics []report.Metric, name string) error {
	tcp, err := way.Streams(ctx, 1, p.sample*time.Duration(1+w.slow))
	if err != nil {
		return err
	}
	// What the stream has left in the queue goes first.
	time.Sleep(w.late)
	udp, err := way.Paced(ctx, pacedSize, pacedPause, p.sample, time.Second+w.late)
	if err != nil {
		return err
	}
	for i, v := range map[int]float64{metricTCP: tcp.PerSecond, metricUDP: udp} {
		metrics[i].Samples[name] = append(metrics[i].Samples[name], v)
	}
	return nil
}

// writeWeather writes a Markdown table.
func writeWeather(w io.Writer, all []weatherReport) error {
	var b strings.Builder
	b.WriteString("| line, each way | TCP, WireGuard alone, Mbit/s | TCP, liqonet / WireGuard | UDP that arrives, WireGuard alone | " +
		"UDP, liqonet / WireGuard | renewals | `status` |\n|---|---|---|---|---|---|---|\n")
	for _, r := range all {
		tcp, udp := r.Metrics[metricTCP], r.Metrics[metricUDP]
		ratio := func(m report.Metric) string {
			s := m.Share(byLiqonet, tunnelAlone)
			return fmt.Sprintf("%.2f (%.2f to %.2f)", s.Median, s.Low, s.High)
		}
		fmt.Fprintf(&b, "| %s | %.1f | %s | %.1f %% | %s | %d | %s |\n", r.Name,
			report.Quantile(tcp.Samples[tunnelAlone], 0.5), ratio(tcp),
			100*report.Quantile(udp.Samples[tunnelAlone], 0.5), ratio(udp), r.Renewals, strings.Join(r.States, "; "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
