// Command faults measures what faults do to a peering, on real clusters: see package faults. It needs root.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/faults"
)

// labName is the default name of the lab. A lab called demo may run beside it.
const labName = "faults"

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
	lab      string
	runs     int
	only     string
	gateways int
	file     string
	page     string
	liqoctl  string
}

func run(ctx context.Context) error {
	var o options
	flag.StringVar(&o.lab, "lab", labName, "`NAME` of the lab; two runs beside each other need two")
	flag.IntVar(&o.runs, "runs", 10, "runs of each fault, with those that are in the file")
	flag.StringVar(&o.only, "only", "", "`FAULT,...` to run (default: all)")
	flag.IntVar(&o.gateways, "gateways", 2, "gateways of each cluster")
	flag.StringVar(&o.file, "file", "", "file of the runs; those in it are not repeated (default: bin/faults-GATEWAYS.json, of another lab bin/faults-GATEWAYS-NAME.json)")
	flag.StringVar(&o.page, "page", "", "file of the page to write, of all runs in the folder of the file (default: none)")
	flag.StringVar(&o.liqoctl, "liqoctl", "bin/liqoctl", "path of the program")
	flag.Parse()
	of := ""
	if o.lab != labName {
		of = "-" + o.lab
	}
	o.file = cmp.Or(o.file, fmt.Sprintf("bin/faults-%d%s.json", o.gateways, of))
	all, err := o.faults()
	if err != nil {
		return err
	}
	report, err := faults.OpenReport(o.file)
	if err != nil {
		return err
	}
	err = o.measure(ctx, all, report)
	return errors.Join(err, report.Table(os.Stdout, all), o.write())
}

// write writes the page, if requested.
func (o options) write() error {
	if o.page == "" {
		return nil
	}
	reports, err := faults.Files(filepath.Dir(o.file))
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if err := faults.Document(&page, reports); err != nil {
		return err
	}
	before, err := os.ReadFile(o.page) // its section of random faults stays
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.WriteFile(o.page, []byte(faults.WithRandom(page.String(), string(before))), 0o644)
}

// faults returns the requested faults.
func (o options) faults() ([]faults.Fault, error) {
	all := faults.All()
	if o.only == "" {
		return all, nil
	}
	var some []faults.Fault
	for _, name := range strings.Split(o.only, ",") {
		i := slices.IndexFunc(all, func(f faults.Fault) bool { return f.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no fault %q", name)
		}
		some = append(some, all[i])
	}
	return some, nil
}

// measure runs the faults that the report lacks, in turn, and then removes the lab.
func (o options) measure(ctx context.Context, all []faults.Fault, report *faults.Report) (err error) {
	if !slices.ContainsFunc(all, func(f faults.Fault) bool { return report.Runs(f.Name) < o.runs }) {
		return nil
	}
	l, err := lab.Start(ctx, lab.Options{Name: o.lab, Spec: faults.Spec(), Log: os.Stderr})
	if errors.Is(err, lab.ErrOtherSpec) {
		return err // another process owns the lab
	}
	defer func() { err = errors.Join(err, lab.Remove(context.WithoutCancel(ctx), o.lab)) }()
	if err != nil {
		return err
	}
	bed, err := faults.NewBed(ctx, l, o.liqoctl, o.gateways)
	if err != nil {
		return err
	}
	for turn := 1; turn <= o.runs; turn++ {
		for _, f := range all {
			if report.Runs(f.Name) >= turn {
				continue
			}
			sample, err := bed.Run(ctx, f)
			if err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "%s: %s\n", f.Name, sample.Line())
			if err := report.Add(sample); err != nil {
				return err
			}
		}
	}
	return nil
}
