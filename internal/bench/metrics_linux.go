package main

import (
	"context"
	"time"

	"liqonet.io/liqonet/internal/bench/load"
	"liqonet.io/liqonet/internal/bench/report"
)

// measurement is one kind of traffic, and the metrics that it yields.
type measurement struct {
	metrics []report.Metric // without samples
	sample  func(context.Context, load.Way, time.Duration) ([]float64, error)
}

// manyStreams is more than this many processors carry by one queue each.
const manyStreams = 4

func measurements() []measurement {
	return []measurement{
		{[]report.Metric{{Name: "TCP, 1 stream", Unit: "Mbit/s"}}, streams(1)},
		{[]report.Metric{{Name: "TCP, 4 streams", Unit: "Mbit/s"}}, streams(manyStreams)},
		{[]report.Metric{{Name: "UDP, 64 bytes", Unit: "packets/ms"}}, datagrams},
		{[]report.Metric{
			{Name: "round trip, median", Unit: "µs", LessIsBetter: true},
			{Name: "round trip, p99", Unit: "µs", LessIsBetter: true},
		}, roundTrips},
	}
}

func streams(count int) func(context.Context, load.Way, time.Duration) ([]float64, error) {
	return func(ctx context.Context, w load.Way, d time.Duration) ([]float64, error) {
		v, err := w.Streams(ctx, count, d)
		return []float64{v / 1e6}, err
	}
}

func datagrams(ctx context.Context, w load.Way, d time.Duration) ([]float64, error) {
	v, err := w.Datagrams(ctx, d)
	return []float64{v / 1e3}, err
}

func roundTrips(ctx context.Context, w load.Way, d time.Duration) ([]float64, error) {
	all, err := w.RoundTrips(ctx, d)
	if err != nil {
		return nil, err
	}
	times := make([]float64, len(all))
	for i, t := range all {
		times[i] = float64(t) / float64(time.Microsecond)
	}
	return []float64{report.Quantile(times, 0.5), report.Quantile(times, 0.99)}, nil
}
