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
)

// flood is what a pod of the peer sends as fast as it can.
type flood struct {
	name string
	send func(context.Context, load.Way, time.Duration) (string, error) // returns what arrived
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

// strain is a path to flood.
type strain struct {
	kinds  path.Kinds
	quota  float64 // share of the time in which the gateway that is flooded runs
	qdisc  string  // of the line; "": the kernel's
	sample time.Duration
}

// runFloods floods a gateway and measures what is left for another flow.
func runFloods(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench floods", flag.ContinueOnError)
	kinds := kindFlags(flags)
	s := strain{}
	only := flags.String("only", "", "send `FLOODS` whose names contain this word alone")
	flags.Float64Var(&s.quota, "quota", 1, "`SHARE` of the time in which the gateway that is flooded runs, as with a processor quota; 1: always")
	flags.StringVar(&s.qdisc, "line", "", "`QDISC` of the line between the clusters, as in tc(8), such as \"netem limit 10000 delay 30ms\"")
	flags.DurationVar(&s.sample, "sample", time.Minute, "`DURATION` of a flood")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || s.quota <= 0 || s.quota > 1 || s.sample <= 0 {
		return fmt.Errorf("arguments %q: want a share of at most 1 and durations of more than nothing", args)
	}
	s.kinds = kinds()
	_, err := io.WriteString(out, "| flood | arrives | another flow, 2 Mbit/s: share that arrives | memory of a gateway, MiB | renewals | `status` |\n|---|---|---|---|---|---|\n")
	for _, f := range floods() {
		if strings.Contains(f.name, *only) {
			r, errFlood := s.measure(ctx, f)
			err = errors.Join(err, errFlood, r.write(out, f.name))
		}
	}
	return err
}

// floodReport is what was measured during a flood.
type floodReport struct {
	arrived  string
	other    float64 // share of another flow that arrives
	peak     int     // of the memory of a gateway, bytes
	renewals int
	states   map[health.State]string // with the last reason
}

// measure floods gateways that have just started.
func (s strain) measure(ctx context.Context, f flood) (r floodReport, err error) {
	bed := path.NewBed(ctx, s.kinds)
	defer func() { err = errors.Join(err, bed.Close()) }()
	way, err := bed.Liqonet(1)
	if err == nil && s.qdisc != "" {
		err = bed.SetLine(s.qdisc)
	}
	if err != nil {
		return r, err
	}
	r.states = map[health.State]string{}
	before := bed.Renewals()
	errs := make([]error, 4)
	flooding, end := context.WithCancel(ctx)
	defer end()
	var beside, flooded sync.WaitGroup
	if s.quota < 1 {
		beside.Go(func() { errs[0] = bed.Throttle(flooding, s.quota) })
	}
	beside.Go(func() { errs[1] = r.watch(flooding, bed) })
	flooded.Go(func() { r.arrived, errs[2] = f.send(ctx, way, s.sample) })
	flooded.Go(func() { r.other, errs[3] = way.Paced(ctx, pacedSize, pacedPause, s.sample, time.Second) })
	flooded.Wait()
	end()
	beside.Wait()
	r.renewals = bed.Renewals() - before
	var errPeak error
	r.peak, errPeak = bed.Peak()
	return r, errors.Join(append(errs, errPeak)...)
}

// watch notes the states of the peering each second.
func (r *floodReport) watch(ctx context.Context, bed *path.Bed) error {
	for load.Wait(ctx, time.Second) == nil {
		verdicts, err := bed.Verdicts(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		for _, v := range verdicts {
			r.states[v.State] = v.Why
		}
	}
	return nil
}

// write writes a row of a Markdown table.
func (r floodReport) write(w io.Writer, name string) error {
	var states []string
	for _, s := range slices.Sorted(maps.Keys(r.states)) {
		states = append(states, strings.TrimSuffix(string(s)+": "+r.states[s], ": "))
	}
	_, err := fmt.Fprintf(w, "| %s | %s | %.3f | %d | %d | %s |\n", name, r.arrived, r.other, r.peak>>20, r.renewals, strings.Join(states, "; "))
	return err
}
