// Command chaos causes random faults of a peering, on real clusters, and measures them: see faults.Bed.Random. It needs
// root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/faults"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// options are the command's flags.
type options struct {
	lab     string
	during  time.Duration
	seed    uint64
	page    string
	liqoctl string
}

func run(ctx context.Context) error {
	var o options
	flag.StringVar(&o.lab, "lab", "chaos", "`NAME` of the lab")
	flag.DurationVar(&o.during, "for", 30*time.Minute, "`DURATION`, after which no fault begins")
	flag.Uint64Var(&o.seed, "seed", 0, "`NUMBER` that selects the faults; 0: a random one")
	flag.StringVar(&o.page, "page", "", "file whose section of random faults is written (default: none)")
	flag.StringVar(&o.liqoctl, "liqoctl", "bin/liqoctl", "path of the program")
	flag.Parse()
	if o.seed == 0 {
		o.seed = uint64(rand.Uint32()) //nolint:gosec // it selects faults
	}
	fmt.Fprintf(os.Stderr, "seed %d: -seed %d repeats these faults\n", o.seed, o.seed)
	r := &faults.RandomReport{Seed: o.seed}
	err := o.measure(ctx, r)
	if len(r.Samples) == 0 {
		return err
	}
	var section strings.Builder
	err = errors.Join(err, r.Section(&section))
	fmt.Fprint(os.Stdout, section.String())
	if n := r.Broken(); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d streams broke", n))
	}
	return errors.Join(err, o.write(section.String()))
}

// measure starts a lab, causes faults, and removes the lab.
func (o options) measure(ctx context.Context, r *faults.RandomReport) (err error) {
	l, err := lab.Start(ctx, lab.Options{Name: o.lab, Spec: faults.Spec(), Log: os.Stderr})
	if errors.Is(err, lab.ErrOtherSpec) {
		return err // another process owns the lab
	}
	defer func() { err = errors.Join(err, lab.Remove(context.WithoutCancel(ctx), o.lab)) }()
	if err != nil {
		return err
	}
	bed, err := faults.NewBed(ctx, l, o.liqoctl, faults.RandomGateways)
	if err != nil {
		return err
	}
	began := time.Now()
	return bed.Random(ctx, o.seed, o.during, func(s faults.RandomSample) {
		r.Add(s)
		r.Took = time.Since(began)
		fmt.Fprintf(os.Stderr, "%s %s, repeated %d times: %s\n", s.At.Format(time.TimeOnly), s.Fault, s.Repeated, s.Line())
	})
}

// write writes the section into the page, if requested.
func (o options) write(section string) error {
	if o.page == "" {
		return nil
	}
	page, err := os.ReadFile(o.page)
	if err != nil {
		return err
	}
	return os.WriteFile(o.page, []byte(faults.WithRandom(string(page), section)), 0o644)
}
