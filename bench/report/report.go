// Package report is what a measurement of paths comes to: medians, and ratios between paths that were measured in
// turn.
package report

import (
	"math"
	"slices"
)

// Report holds what was measured on one kernel.
type Report struct {
	Kernel    string  `json:"kernel"`    // such as "Linux 6.12.0 (guest)"
	Overlay   string  `json:"overlay"`   // geneve or vxlan
	WireGuard string  `json:"wireGuard"` // kernel or userspace
	Rounds    int     `json:"rounds"`
	Seconds   float64 `json:"seconds"` // of each sample
	// Paths are in the order in which they are shown.
	Paths   []string `json:"paths"`
	Metrics []Metric `json:"metrics"`
	// Ratios are those that are asked for.
	Ratios []Ratio `json:"ratios"`
}

// Metric is one thing that was measured of each path.
type Metric struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// LessIsBetter turns ratios round, so that more than one always means better.
	LessIsBetter bool `json:"lessIsBetter,omitempty"`
	// Samples are by path, one a round.
	Samples map[string][]float64 `json:"samples"`
}

// Ratio names two paths to compare, and how good the first is to be at least.
type Ratio struct {
	Of   string  `json:"of"`
	To   string  `json:"to"`
	Aim  float64 `json:"aim"`  // 0: none
	Each []Share `json:"each"` // by metric, in their order
}

// Share is a ratio of one metric: the quartiles of the rounds' ratios.
type Share struct {
	Low    float64 `json:"low"`
	Median float64 `json:"median"`
	High   float64 `json:"high"`
}

// Compare fills in the ratios. Paths are compared round by round: what disturbs a machine for longer than a round
// disturbs both. A ratio of a path that was not measured is left out.
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

// Quantile returns the value below which a share q, 0 to 1, of the values lies, between two of them where none is
// exactly there; NaN of no values.
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
