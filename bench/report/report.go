// Package report has the results of measuring paths: medians, and ratios between paths that were measured in turn.
package report

import (
	"math"
	"slices"
)

// Report has the measurements on one kernel.
type Report struct {
	Kernel    string  `json:"kernel"`    // such as "Linux 6.12.0 (guest)"
	Overlay   string  `json:"overlay"`   // geneve or vxlan
	WireGuard string  `json:"wireGuard"` // kernel or userspace
	Rounds    int     `json:"rounds"`
	Seconds   float64 `json:"seconds"` // of each sample
	// Paths are in display order.
	Paths   []string `json:"paths"`
	Metrics []Metric `json:"metrics"`
	// Ratios are the requested ratios.
	Ratios []Ratio `json:"ratios"`
}

// Metric is a metric of each path.
type Metric struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// LessIsBetter inverts ratios, so that more than one always means better.
	LessIsBetter bool `json:"lessIsBetter,omitempty"`
	// Samples are by path, one per round.
	Samples map[string][]float64 `json:"samples"`
}

// Ratio names two paths to compare, and the minimum for the first.
type Ratio struct {
	Of   string  `json:"of"`
	To   string  `json:"to"`
	Aim  float64 `json:"aim"`  // 0: none
	Each []Share `json:"each"` // by metric, in the order of Metrics
}

// Share is the ratio of one metric, as quartiles over the rounds.
type Share struct {
	Low    float64 `json:"low"`
	Median float64 `json:"median"`
	High   float64 `json:"high"`
}

// Compare computes the ratios. It compares paths round by round: a disturbance of the machine that is longer than a
// round affects both. Ratios of paths that were not measured are omitted.
func (r *Report) Compare(ratios ...Ratio) {
	for _, ratio := range ratios {
		if !slices.Contains(r.Paths, ratio.Of) || !slices.Contains(r.Paths, ratio.To) {
			continue
		}
		for _, m := range r.Metrics {
			ratio.Each = append(ratio.Each, m.Share(ratio.Of, ratio.To))
		}
		r.Ratios = append(r.Ratios, ratio)
	}
}

// Share compares the samples of two paths round by round.
func (m Metric) Share(of, to string) Share {
	if m.LessIsBetter {
		of, to = to, of
	}
	var each []float64
	for i, v := range m.Samples[of] {
		if i < len(m.Samples[to]) {
			each = append(each, v/m.Samples[to][i])
		}
	}
	return Share{Low: Quantile(each, 0.25), Median: Quantile(each, 0.5), High: Quantile(each, 0.75)}
}

// Quantile returns the q-quantile of the values, q from 0 to 1, interpolated between two values; NaN if there are no
// values.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	below := int(at)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (at-float64(below))*(sorted[above]-sorted[below])
}
