package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"liqonet.io/liqonet/bench/load"
	"liqonet.io/liqonet/bench/path"
	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/clusters"
)

// flood is traffic that a pod of the peer sends as fast as possible.
type flood struct {
	name string
	send func(context.Context, load.Way, time.Duration) (string, error) // returns the received traffic
}

func floods() []flood {
	return []flood{
		{"none", func(ctx context.Context, _ load.Way, d time.Duration) (string, error) { return "", load.Wait(ctx, d) }},
		{"UDP, 64 bytes", datagramFlood(64)},
		{"UDP, 1400 bytes", datagramFlood(1392)}, // the path MTU is 1420
		{"64 TCP streams", func(ctx context.Context, w load.Way, d time.Duration) (string, error) {
			r, err := w.Streams(ctx, 64, d)
			return fmt.Sprintf("%.0f Mbit/s", r.PerSecond), err
		}},
	}
}

func datagramFlood(size int) func(context.Context, load.Way, time.Duration) (string, error) {
	return func(ctx context.Context, w load.Way, d time.Duration) (string, error) {
		sent, arrived, err := w.Flood(ctx, size, d)
		return fmt.Sprintf("%.0f of %.0f packets/s", arrived, sent), err
	}
}

// strain is a path with a flood.
type strain struct {
	kinds    clusters.Kinds
	gateways int           // of each cluster
	quota    float64       // of the flooded gateway, a share of one core; 0: none
	delay    time.Duration // of the link, each way
	qdisc    string        // of the link; "": the kernel's default
	sample   time.Duration
}

// runFloods floods a gateway and measures another flow.
func runFloods(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench floods", flag.ContinueOnError)
	kinds := kindFlags(flags)
	s := strain{}
	only := flags.String("only", "", "send `FLOODS` whose names contain this word alone")
	transport := flags.String("transport", string(records.UDP), "`TRANSPORT` of the tunnels: udp or websocket")
	flags.IntVar(&s.gateways, "gateways", 1, "`NUMBER` of gateways of each cluster")
	flags.Float64Var(&s.quota, "quota", 0, "`SHARE` of one core: processor quota of the first gateway that receives the flood; 0: none")
	flags.DurationVar(&s.delay, "delay", 0, "`DURATION` that a packet takes between the clusters, each way")
	flags.StringVar(&s.qdisc, "line", "", "`QDISC` of the line between the clusters, as in tc(8), such as \"netem limit 10000 delay 30ms\"")
	flags.DurationVar(&s.sample, "sample", time.Minute, "`DURATION` of a flood")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || s.quota < 0 || s.sample <= 0 || s.gateways < 1 || s.gateways > path.MaxGateways || s.delay < 0 {
		return fmt.Errorf("arguments %q: want a share and durations of more than nothing, and 1 or %d gateways", args, path.MaxGateways)
	}
	s.kinds = kinds()
	s.kinds.Transport = records.Transport(*transport)
	_, err := io.WriteString(out, "| flood | arrives | another flow, 2 Mbit/s: share that arrives | memory of a gateway, MiB | renewals | failovers | `status` |\n|---|---|---|---|---|---|---|\n")
	for _, f := range floods() {
		if strings.Contains(f.name, *only) {
			r, errFlood := s.measure(ctx, f)
			err = errors.Join(err, errFlood, r.write(out, f.name))
		}
	}
	return err
}

// floodReport is the result of a flood.
type floodReport struct {
	arrived   string
	other     float64 // received share of another flow
	peak      int     // of a gateway's memory, bytes
	renewals  int
	failovers int
	seconds   int // in which the state was observed
	states    map[health.State]stateCount
}

// stateCount counts the seconds of a state, and has its last reason.
type stateCount struct {
	seconds int
	why     string
}

// measure floods gateways that have just started.
func (s strain) measure(ctx context.Context, f flood) (r floodReport, err error) {
	bed := path.NewBed(ctx, s.kinds)
	defer func() { err = errors.Join(err, bed.Close()) }()
	bed.Delay = s.delay
	way, err := bed.Liqonet(s.gateways)
	if err == nil && s.qdisc != "" {
		err = bed.SetLine(s.qdisc)
	}
	if err == nil && s.quota > 0 {
		err = bed.Limit(s.quota)
	}
	if err != nil {
		return r, err
	}
	r.states = map[health.State]stateCount{}
	before := bed.Renewals()
	errs := make([]error, 3)
	flooding, end := context.WithCancel(ctx)
	defer end()
	var beside, flooded sync.WaitGroup
	beside.Go(func() { errs[0] = r.watch(flooding, bed) })
	flooded.Go(func() { r.arrived, errs[1] = f.send(ctx, way, s.sample) })
	flooded.Go(func() { r.other, errs[2] = way.Paced(ctx, pacedSize, pacedPause, s.sample, time.Second) })
	flooded.Wait()
	end()
	beside.Wait()
	r.renewals = bed.Renewals() - before
	var errPeak, errFailovers error
	r.peak, errPeak = bed.Peak()
	r.failovers, errFailovers = bed.Failovers(ctx)
	return r, errors.Join(append(errs, errPeak, errFailovers)...)
}

// watch records the states of the peering each second.
func (r *floodReport) watch(ctx context.Context, bed *path.Bed) error {
	for load.Wait(ctx, time.Second) == nil {
		verdicts, err := bed.Verdicts(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		for _, v := range verdicts {
			r.seconds++
			r.states[v.State] = stateCount{r.states[v.State].seconds + 1, v.Why}
		}
	}
	return nil
}

// write writes a row of a Markdown table.
func (r floodReport) write(w io.Writer, name string) error {
	var states []string
	for _, s := range slices.Sorted(maps.Keys(r.states)) {
		states = append(states, strings.TrimSuffix(fmt.Sprintf("%s %.0f %%: %s", s, 100*float64(r.states[s].seconds)/float64(r.seconds), r.states[s].why), ": "))
	}
	_, err := fmt.Fprintf(w, "| %s | %s | %.3f | %d | %d | %d | %s |\n", name, r.arrived, r.other, r.peak>>20, r.renewals, r.failovers, strings.Join(states, "; "))
	return err
}
