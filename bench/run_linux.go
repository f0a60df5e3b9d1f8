package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/bench/load"
	"liqonet.io/liqonet/bench/path"
	"liqonet.io/liqonet/bench/report"
	"liqonet.io/liqonet/internal/records"
)

// Names of the paths.
const (
	tunnelAlone = "tunnel" // between the gateways, without package netops/tunnel
	ownTunnel   = "own tunnel"
	baseline    = "baseline"     // from pod to pod, without liqonet
	byLiqo      = "Liqo model"   // the same, with what Liqo puts in the way
	byLiqonet   = "liqonet"      // the same
	byTwo       = "two gateways" // liqonet, with two in each cluster

	// byLiqoLarge is the model with the MTU that the other paths have. It is measured if it is asked for by name.
	byLiqoLarge = "Liqo model 1420"
)

// aims are the ratios that are compared.
var aims = []report.Ratio{
	{Of: byLiqonet, To: baseline, Aim: 0.97},
	{Of: byLiqo, To: baseline},
	{Of: byLiqoLarge, To: baseline},
	{Of: byLiqonet, To: byLiqo, Aim: 1},
	{Of: byLiqonet, To: byLiqoLarge, Aim: 1},
	{Of: byLiqonet, To: tunnelAlone, Aim: 0.9},
	{Of: ownTunnel, To: tunnelAlone, Aim: 0.97},
	{Of: byTwo, To: byLiqonet, Aim: 0.9},
}

// plan says what is measured and how long.
type plan struct {
	kinds  path.Kinds
	only   []string // names of paths; none: all
	rounds int
	sample time.Duration
}

// run builds all paths, measures them in turn and takes them down, also when ctx ends early.
func (p plan) run(ctx context.Context, progress io.Writer) (r report.Report, err error) {
	release, err := kernelRelease()
	if err != nil {
		return r, err
	}
	r = report.Report{
		Kernel: release, Overlay: string(p.kinds.Overlay), WireGuard: string(p.kinds.WireGuard),
		Rounds: p.rounds, Seconds: p.sample.Seconds(),
	}
	bed := path.NewBed(ctx, p.kinds)
	defer func() { err = errors.Join(err, bed.Close()) }()
	ways, names, err := p.build(bed)
	if err != nil {
		return r, err
	}
	r.Paths = names
	all := measurements()
	for _, m := range all {
		for _, metric := range m.metrics {
			metric.Samples = map[string][]float64{}
			r.Metrics = append(r.Metrics, metric)
		}
	}
	for round := range p.rounds {
		_, _ = fmt.Fprintf(progress, "%s: round %d of %d\n", release, round+1, p.rounds)
		if err := p.round(ctx, all, ways, r); err != nil {
			return r, err
		}
	}
	r.Compare(aims...)
	return r, nil
}

// build makes the paths that are asked for. The tunnel of this process is compared with wireguard-go's only: where
// the kernel carries the packets, both are the same.
func (p plan) build(bed *path.Bed) (ways map[string]load.Way, names []string, err error) {
	ways = map[string]load.Way{}
	add := func(name string, build func() (load.Way, error)) {
		if err != nil || len(p.only) > 0 && !slices.Contains(p.only, name) {
			return
		}
		var w load.Way
		if w, err = build(); err != nil {
			err = fmt.Errorf("build path %q: %w", name, err)
			return
		}
		ways[name], names = w, append(names, name)
	}
	gateways, err := bed.Gateways()
	add(tunnelAlone, gateways.Tunnel)
	if p.kinds.WireGuard == records.Userspace {
		add(ownTunnel, gateways.OwnTunnel)
	}
	add(baseline, bed.Baseline)
	add(byLiqo, func() (load.Way, error) { return bed.LiqoModel(path.LiqoMTU) })
	if slices.Contains(p.only, byLiqoLarge) {
		add(byLiqoLarge, func() (load.Way, error) { return bed.LiqoModel(path.CommonMTU) })
	}
	add(byLiqonet, func() (load.Way, error) { return bed.Liqonet(1) })
	add(byTwo, func() (load.Way, error) { return bed.Liqonet(2) })
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("no path is called %q", p.only)
	}
	return ways, names, err
}

// round measures everything once, each time in another order: no path has a place of its own, nor always the same one
// before it.
func (p plan) round(ctx context.Context, all []measurement, ways map[string]load.Way, r report.Report) error {
	metrics := r.Metrics
	for _, m := range all {
		for _, i := range rand.Perm(len(r.Paths)) { //nolint:gosec // an order is no secret
			name := r.Paths[i]
			values, err := m.sample(ctx, ways[name], p.sample)
			if err != nil {
				return fmt.Errorf("path %q: %w", name, err)
			}
			for j, v := range values {
				metrics[j].Samples[name] = append(metrics[j].Samples[name], v)
			}
		}
		metrics = metrics[len(m.metrics):]
	}
	return nil
}

// kernelRelease names the kernel of this machine.
func kernelRelease() (string, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", fmt.Errorf("uname: %w", err)
	}
	return "Linux " + unix.ByteSliceToString(u.Release[:]), nil
}
