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
	"liqonet.io/liqonet/internal/testbed/clusters"
)

// Names of the paths.
const (
	tunnelAlone = "tunnel" // between the gateways, without package netops/tunnel/wireguard
	ownTunnel   = "own tunnel"
	baseline    = "baseline"     // from pod to pod, without liqonet
	liqoModel   = "Liqo model"   // from pod to pod, with the elements of Liqo's path
	liqonetPath = "liqonet"      // from pod to pod
	twoGateways = "two gateways" // liqonet, with two gateways in each cluster
	webSocket   = "WebSocket"    // liqonet, with WebSocket instead of UDP
	unencrypted = "unencrypted"  // liqonet, without encryption

	// liqoModelLarge is the model with the MTU of the other paths. It is measured only if requested by name.
	liqoModelLarge = "Liqo model 1420"
)

// aims are the ratios to report.
var aims = []report.Ratio{
	{Of: liqonetPath, To: baseline, Aim: 0.97},
	{Of: liqoModel, To: baseline},
	{Of: liqoModelLarge, To: baseline},
	{Of: liqonetPath, To: liqoModel, Aim: 1},
	{Of: liqonetPath, To: liqoModelLarge, Aim: 1},
	{Of: liqonetPath, To: tunnelAlone, Aim: 0.9},
	{Of: ownTunnel, To: tunnelAlone, Aim: 0.97},
	{Of: twoGateways, To: liqonetPath, Aim: 0.9},
	{Of: webSocket, To: liqonetPath, Aim: 0.5},
	{Of: unencrypted, To: liqonetPath, Aim: 1},
}

// plan has the paths to measure and the durations.
type plan struct {
	kinds  clusters.Kinds
	only   []string // names of paths; none: all
	rounds int
	sample time.Duration
}

// run builds all paths, measures them in turn and removes them, even if ctx ends early.
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

// build builds the selected paths. The tunnel of this process is compared with wireguard-go only: with the kernel's
// WireGuard, both are the same.
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
	add(liqoModel, func() (load.Way, error) { return bed.LiqoModel(path.LiqoMTU) })
	if slices.Contains(p.only, liqoModelLarge) {
		add(liqoModelLarge, func() (load.Way, error) { return bed.LiqoModel(path.CommonMTU) })
	}
	add(liqonetPath, func() (load.Way, error) { return bed.Liqonet(1) })
	add(twoGateways, func() (load.Way, error) { return bed.Liqonet(2) })
	add(webSocket, bed.WebSocket)
	add(unencrypted, bed.Unencrypted)
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("no path is called %q", p.only)
	}
	return ways, names, err
}

// round measures all metrics once, in random order: no path has a fixed position, nor a fixed predecessor.
func (p plan) round(ctx context.Context, all []measurement, ways map[string]load.Way, r report.Report) error {
	metrics := r.Metrics
	for _, m := range all {
		for _, i := range rand.Perm(len(r.Paths)) { //nolint:gosec // the order is not secret
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

// kernelRelease returns the name of this machine's kernel.
func kernelRelease() (string, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", fmt.Errorf("uname: %w", err)
	}
	return "Linux " + unix.ByteSliceToString(u.Release[:]), nil
}
