package main

import (
	"context"
	"time"

	"liqonet.io/liqonet/bench/load"
	"liqonet.io/liqonet/bench/report"
)

// measurement is one kind of traffic with its metrics.
type measurement struct {
	metrics []report.Metric // without samples
	sample  func(context.Context, load.Way, time.Duration) ([]float64, error)
}

// manyStreams is more than the processors of this machine carry with one queue each.
const manyStreams = 4

func measurements() []measurement {
	rate := func(name, unit, processorUnit string) []report.Metric {
		return []report.Metric{
			{Name: name, Unit: unit},
			{Name: name + ", processor", Unit: processorUnit, LessIsBetter: true},
		}
	}
	return []measurement{
		{rate("TCP, 1 stream", "Mbit/s", "µs/Mbit"), streams(1)},
		{rate("TCP, 4 streams", "Mbit/s", "µs/Mbit"), streams(manyStreams)},
		{rate("UDP, 64 bytes", "packets/s", "µs/packet"), datagrams},
		{[]report.Metric{
			{Name: "round trip, median", Unit: "µs", LessIsBetter: true},
			{Name: "round trip, p99", Unit: "µs", LessIsBetter: true},
		}, roundTrips},
	}
}

func streams(count int) func(context.Context, load.Way, time.Duration) ([]float64, error) {
	return func(ctx context.Context, w load.Way, d time.Duration) ([]float64, error) {
		r, err := w.Streams(ctx, count, d)
		return []float64{r.PerSecond, microseconds(r.Processor)}, err
	}
}

func datagrams(ctx context.Context, w load.Way, d time.Duration) ([]float64, error) {
	r, err := w.Datagrams(ctx, d)
	return []float64{r.PerSecond, microseconds(r.Processor)}, err
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func roundTrips(ctx context.Context, w load.Way, d time.Duration) ([]float64, error) {
	all, err := w.RoundTrips(ctx, d)
	if err != nil {
		return nil, err
	}
	times := make([]float64, len(all))
	for i, t := range all {
		times[i] = microseconds(t)
	}
	return []float64{report.Quantile(times, 0.5), report.Quantile(times, 0.99)}, nil
}
