//go:build linux

// Command bench measures the paths between two clusters, in turn, in network namespaces of this machine: the tunnel
// alone, a baseline from pod to pod, a model of Liqo's path, and the path of liqonet's helpers. It needs root.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"liqonet.io/liqonet/bench/path"
	"liqonet.io/liqonet/bench/report"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/process"
)

func main() {
	process.Main(path.Run)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		stop()
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "weather" {
		return runWeather(ctx, args[1:])
	}
	if len(args) > 0 && args[0] == "scale" {
		return runScale(ctx, args[1:], os.Stdout)
	}
	if len(args) > 0 && args[0] == "floods" {
		return runFloods(ctx, args[1:], os.Stdout)
	}
	o, err := parse(args, os.Stderr)
	if err != nil {
		return err
	}
	reports, err := o.measure(ctx)
	if err != nil {
		return err
	}
	return o.write(os.Stdout, reports)
}

// options are the flags of the program.
type options struct {
	plan  plan
	guest string // command that runs programs in a guest; "": none
	json  bool
}

func parse(args []string, out io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(out)
	kinds := kindFlags(flags)
	only := flags.String("only", "", "measure these `PATHS` alone, by name, with commas between")
	format := flags.String("o", "text", "`FORMAT`: text or json")
	flags.IntVar(&o.plan.rounds, "rounds", 12, "`NUMBER` of samples of each path")
	flags.DurationVar(&o.plan.sample, "sample", 500*time.Millisecond, "`DURATION` of a sample")
	flags.StringVar(&o.guest, "guest", "", "`PROGRAM` lab: measure in a guest, too, with Geneve and the kernel's WireGuard")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.plan.kinds = kinds()
	if *only != "" {
		o.plan.only = strings.Split(*only, ",")
	}
	o.json = *format == "json"
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("argument %q: want none", flags.Arg(0))
	case o.plan.rounds < 1 || o.plan.sample <= 0:
		return o, fmt.Errorf("%d rounds of %v: want some", o.plan.rounds, o.plan.sample)
	case *format != "text" && *format != "json":
		return o, fmt.Errorf("format %q: want text or json", *format)
	}
	return o, nil
}

// kindFlags adds the flags that select overlay and WireGuard.
func kindFlags(flags *flag.FlagSet) func() clusters.Kinds {
	overlay := flags.String("overlay", string(records.VXLAN), "`KIND` of the overlay: vxlan or geneve")
	wireGuard := flags.String("wireguard", string(records.Userspace), "`IMPLEMENTATION` of WireGuard: userspace or kernel")
	return func() clusters.Kinds {
		return clusters.Kinds{Overlay: records.OverlayKind(*overlay), WireGuard: records.Implementation(*wireGuard)}
	}
}

// measure measures on this machine and, if requested, in a guest.
func (o options) measure(ctx context.Context) ([]report.Report, error) {
	here, err := o.plan.run(ctx, os.Stderr)
	if err != nil || o.guest == "" {
		return []report.Report{here}, err
	}
	guest, err := o.measureInGuest(ctx)
	return append([]report.Report{here}, guest...), err
}

// measureInGuest runs this program in the guest.
func (o options) measureInGuest(ctx context.Context) ([]report.Report, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, o.guest, "guest", "run", "--", self, "-o=json", "-overlay=geneve", "-wireguard=kernel",
		fmt.Sprintf("-rounds=%d", o.plan.rounds), "-sample="+o.plan.sample.String(), "-only="+strings.Join(o.plan.only, ","))
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("measure in a guest: %w", err)
	}
	var reports []report.Report
	if err := json.Unmarshal(out, &reports); err != nil {
		return nil, fmt.Errorf("read the guest's report: %w", err)
	}
	return reports, nil
}

func (o options) write(w io.Writer, reports []report.Report) error {
	if o.json {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(reports)
	}
	for i, r := range reports {
		if i > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if err := r.WriteText(w); err != nil {
			return err
		}
	}
	return nil
}
