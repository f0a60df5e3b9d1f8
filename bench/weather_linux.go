package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"liqonet.io/liqonet/bench/load"
	"liqonet.io/liqonet/bench/path"
	"liqonet.io/liqonet/bench/report"
	"liqonet.io/liqonet/internal/health"
)

// weather is the behaviour of a link, in each direction.
type weather struct {
	Name  string `json:"name"`
	qdisc string // a queueing discipline of tc(8)
	// slow is the factor by which TCP takes longer to reach its speed.
	slow int
	// late is the maximum time in flight of a packet.
	late time.Duration
}

// lineRate is the rate of every link in Mbit/s, unless a flag sets another one.
const lineRate = 20

// weathers returns the links to measure, of a rate in Mbit/s, with a delay where their names have none. By default a
// queue holds a twentieth of a second.
func weathers(rate int, delay time.Duration) []weather {
	// netem returns a queueing discipline whose queue holds that many packets at lineRate (tc-netem(8)).
	netem := func(packets int, settings string) string {
		return fmt.Sprintf("netem limit %d %s rate %dmbit", packets*rate/lineRate, settings, rate)
	}
	near := func(more string) string { return netem(130, fmt.Sprintf("delay %dus %s", delay.Microseconds(), more)) }
	all := []weather{{Name: "calm", qdisc: near("")}}
	for _, loss := range []string{"1%", "5%", "10%", "20%"} {
		all = append(all, weather{Name: loss + " loss", qdisc: near("loss " + loss)})
	}
	return append(all,
		weather{Name: "10 ms delay, 1 ms jitter", qdisc: netem(130, "delay 10ms 1ms")},
		weather{Name: "100 ms delay, 10 ms jitter", qdisc: netem(300, "delay 100ms 10ms"), slow: 1},
		weather{Name: "700 ms delay, 20 ms jitter", qdisc: netem(1400, "delay 700ms 20ms"), slow: 4, late: time.Second},
		weather{Name: "10% reordered by 10 ms", qdisc: netem(130, "delay 10ms reorder 90%")},
		weather{Name: "5% duplicated", qdisc: near("duplicate 5%")},
		weather{Name: "queue of 1.5 s", qdisc: netem(2500, fmt.Sprintf("delay %dus", delay.Microseconds())), slow: 1, late: 2 * time.Second},
	)
}

// weatherReport is the result of one link.
type weatherReport struct {
	weather
	Metrics  []report.Metric         `json:"metrics"`
	States   map[health.State]string `json:"states"`   // of the peering after a sample, each with its last reason
	Renewals int                     `json:"renewals"` // of the tunnels
}

// Metrics of a link.
const (
	metricTCP = iota
	metricPause
	metricRoundTrip
	metricUDP
)

// UDP packets are sent at a tenth of the link's rate.
const (
	pacedSize  = 1200
	pacedPause = 5 * time.Millisecond
)

// weatherPlan has the links to measure and the durations.
type weatherPlan struct {
	plan
	lines   []weather
	streams int // concurrent TCP streams
}

func runWeather(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench weather", flag.ContinueOnError)
	p := weatherPlan{plan: plan{only: []string{tunnelAlone, liqonetPath, webSocket}}}
	kinds := kindFlags(flags)
	rate := flags.Int("rate", lineRate, "`MBITS` a second of the links")
	delay := flags.Duration("delay", 5*time.Millisecond, "`DURATION` that a packet takes each way, on links whose names have none")
	only := flags.String("only", "", "measure `LINES` whose names contain one of these words alone, with commas between")
	format := flags.String("o", "text", "`FORMAT`: text, a Markdown table, or json")
	flags.IntVar(&p.rounds, "rounds", 3, "`NUMBER` of samples of each path on each line")
	flags.IntVar(&p.streams, "streams", 1, "`NUMBER` of TCP streams at once")
	flags.DurationVar(&p.sample, "sample", 10*time.Second, "`DURATION` of a sample; longer on lines of a long delay")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || p.rounds < 1 || p.streams < 1 || *rate < 1 || p.sample <= 0 || *format != "text" && *format != "json" {
		return fmt.Errorf("arguments %q: want rounds, streams, a rate and durations of more than nothing, and format text or json", args)
	}
	p.kinds = kinds()
	p.lines = slices.DeleteFunc(weathers(*rate, *delay), func(w weather) bool {
		return !slices.ContainsFunc(strings.Split(*only, ","), func(word string) bool { return strings.Contains(w.Name, word) })
	})
	if *format == "json" {
		return p.measure(ctx, os.Stderr, func(r weatherReport) error { return json.NewEncoder(os.Stdout).Encode(r) })
	}
	if err := writeWeatherHeader(os.Stdout); err != nil {
		return err
	}
	return p.measure(ctx, os.Stderr, func(r weatherReport) error { return r.write(os.Stdout) })
}

// measure builds both paths once, changes the conditions of their links, and reports each link when it is measured.
func (p weatherPlan) measure(ctx context.Context, progress io.Writer, report func(weatherReport) error) (err error) {
	bed := path.NewBed(ctx, p.kinds)
	defer func() { err = errors.Join(err, bed.Close()) }()
	ways, names, err := p.build(bed)
	if err != nil {
		return err
	}
	for _, w := range p.lines {
		_, _ = fmt.Fprintln(progress, w.Name)
		r, err := p.line(ctx, bed, w, ways, names)
		if err == nil {
			err = report(r)
		}
		if err != nil {
			return fmt.Errorf("line %q: %w", w.Name, err)
		}
	}
	return nil
}

// line measures one link, in rounds that each begin with another path.
func (p weatherPlan) line(ctx context.Context, bed *path.Bed, w weather, ways map[string]load.Way, names []string) (weatherReport, error) {
	r := weatherReport{weather: w, States: map[health.State]string{}, Metrics: []report.Metric{
		metricTCP:       {Name: "TCP", Unit: "Mbit/s", Samples: map[string][]float64{}},
		metricPause:     {Name: "longest pause of a stream", Unit: "s", LessIsBetter: true, Samples: map[string][]float64{}},
		metricRoundTrip: {Name: "round trip beside the streams", Unit: "ms", LessIsBetter: true, Samples: map[string][]float64{}},
		metricUDP:       {Name: "UDP", Unit: "share that arrives", Samples: map[string][]float64{}},
	}}
	if err := bed.SetLine(w.qdisc); err != nil {
		return r, err
	}
	before := bed.Renewals()
	for round := range p.rounds {
		for i := range names {
			name := names[(round+i)%len(names)]
			if err := p.sampleLine(ctx, ways[name], w, r.Metrics, name); err != nil {
				return r, fmt.Errorf("path %q: %w", name, err)
			}
			if name != liqonetPath {
				continue
			}
			verdicts, err := bed.Verdicts(ctx)
			if err != nil {
				return r, err
			}
			for _, v := range verdicts {
				r.States[v.State] = v.Why
			}
		}
	}
	r.Renewals = bed.Renewals() - before
	return r, nil
}

func (p weatherPlan) sampleLine(ctx context.Context, way load.Way, w weather, metrics []report.Metric, name string) error {
	var tcp load.Rate
	var trips []time.Duration
	during := p.sample * time.Duration(1+w.slow)
	group, both := errgroup.WithContext(ctx)
	group.Go(func() (err error) { tcp, err = way.Streams(both, p.streams, during); return err })
	group.Go(func() (err error) { trips, err = way.RoundTrips(both, during); return err })
	if err := group.Wait(); err != nil {
		return err
	}
	slices.Sort(trips)
	// The data of the stream in the queue is sent first.
	if err := load.Wait(ctx, w.late); err != nil {
		return err
	}
	udp, err := way.Paced(ctx, pacedSize, pacedPause, p.sample, time.Second+w.late)
	if err != nil {
		return err
	}
	for i, v := range map[int]float64{
		metricTCP: tcp.PerSecond, metricPause: tcp.Pause.Seconds(), metricRoundTrip: 1000 * trips[len(trips)/2].Seconds(), metricUDP: udp,
	} {
		metrics[i].Samples[name] = append(metrics[i].Samples[name], v)
	}
	return nil
}

// writeWeatherHeader writes the header of a Markdown table.
func writeWeatherHeader(w io.Writer) error {
	_, err := io.WriteString(w, "| link, each way | TCP, WireGuard alone, Mbit/s | TCP, liqonet / WireGuard | TCP, WebSocket / liqonet | longest pause of a stream, s: liqonet, WebSocket | round trip beside it, ms: liqonet, WebSocket | UDP that arrives, WireGuard alone | "+
		"UDP, liqonet / WireGuard | UDP, WebSocket / liqonet | renewals | `status` |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	return err
}

// write writes a row of the table.
func (r weatherReport) write(w io.Writer) error {
	tcp, udp := r.Metrics[metricTCP], r.Metrics[metricUDP]
	ratio := func(m report.Metric, of, to string) string {
		s := m.Share(of, to)
		return fmt.Sprintf("%.2f (%.2f to %.2f)", s.Median, s.Low, s.High)
	}
	var states []string
	for _, s := range slices.Sorted(maps.Keys(r.States)) {
		states = append(states, strings.TrimSuffix(string(s)+": "+r.States[s], ": "))
	}
	of := func(i int, path string) float64 { return report.Quantile(r.Metrics[i].Samples[path], 0.5) }
	_, err := fmt.Fprintf(w, "| %s | %.2f | %s | %s | %.2f, %.2f | %.0f, %.0f | %.1f %% | %s | %s | %d | %s |\n", r.Name,
		report.Quantile(tcp.Samples[tunnelAlone], 0.5), ratio(tcp, liqonetPath, tunnelAlone), ratio(tcp, webSocket, liqonetPath),
		of(metricPause, liqonetPath), of(metricPause, webSocket), of(metricRoundTrip, liqonetPath), of(metricRoundTrip, webSocket),
		100*report.Quantile(udp.Samples[tunnelAlone], 0.5), ratio(udp, liqonetPath, tunnelAlone), ratio(udp, webSocket, liqonetPath),
		r.Renewals, strings.Join(states, "; "))
	return err
}
