package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is a file of samples, one JSON document a line. Its runs are not repeated, so that an interrupted command
// continues.
type Report struct {
	file    string
	samples []Sample
}

// OpenReport reads the file if it exists.
func OpenReport(file string) (*Report, error) {
	r := &Report{file: file}
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return r, nil
	}
	for line := range bytes.Lines(text) {
		var s Sample
		if err := json.Unmarshal(line, &s); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		r.samples = append(r.samples, s)
	}
	return r, err
}

// Runs is how often a fault was run.
func (r *Report) Runs(fault string) int { return len(r.of(fault)) }

func (r *Report) of(fault string) []Sample {
	return slices.DeleteFunc(slices.Clone(r.samples), func(s Sample) bool { return s.Fault != fault })
}

// Add appends a sample to the file.
func (r *Report) Add(s Sample) error {
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(r.file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	r.samples = append(r.samples, s)
	_, err = f.Write(append(line, '\n'))
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// columns of the table: what of a sample, and whether it is a time.
var columns = []struct {
	title string
	of    func(Sample) float64
}{
	{"packets lost", func(s Sample) float64 { return float64(s.Lost) }},
	{"seconds without", func(s Sample) float64 { return s.Without.Seconds() }},
	{"sender stalled", func(s Sample) float64 { return s.Stalled.Seconds() }},
	{"streams broken", func(s Sample) float64 { return float64(s.Broken) }},
	{"their longest pause", func(s Sample) float64 { return s.Pause.Seconds() }},
	{"connections failed", func(s Sample) float64 { return float64(s.Failed) }},
	{"status turned after", func(s Sample) float64 { return s.Turned.Seconds() }},
	{"healthy after", func(s Sample) float64 { return s.Healed.Seconds() }},
}

// Table writes medians and worst values as a Markdown table; a fault that was not run is left out.
func (r *Report) Table(w io.Writer, faults []Fault) error {
	out := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	titles := []string{"fault", "runs", "aim"}
	for _, c := range columns {
		titles = append(titles, c.title)
	}
	row(out, titles)
	row(out, slices.Repeat([]string{"---"}, len(titles)))
	for _, f := range faults {
		samples := r.of(f.Name)
		if len(samples) == 0 {
			continue
		}
		cells := []string{f.What, fmt.Sprint(len(samples)), f.Aim.of(samples)}
		for _, c := range columns {
			var values []float64
			for _, s := range samples {
				values = append(values, c.of(s))
			}
			slices.Sort(values)
			cells = append(cells, figure(values[len(values)/2])+" / "+figure(values[len(values)-1]))
		}
		row(out, cells)
	}
	return out.Flush()
}

func row(w io.Writer, cells []string) {
	_, _ = fmt.Fprintf(w, "| %s |\n", strings.Join(cells, "\t| ")) // Flush returns the error
}

// figure writes a value with two decimals where it has any.
func figure(v float64) string {
	if v == float64(int(v)) {
		return fmt.Sprintf("%d", int(v))
	}
	return fmt.Sprintf("%.2f", v)
}

// Line is a sample in one line of text, for the progress.
func (s Sample) Line() string {
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
	turned := "status stayed healthy"
	if s.Turned > 0 {
		turned = fmt.Sprintf("status turned after %s, healthy after %s", round(s.Turned), round(s.Healed))
	}
	return fmt.Sprintf("%d of %d packets lost, %d for good, %s without, sender stalled %s; %d streams broken, longest pause %s; %d of %d connections failed; %s",
		s.Lost, s.Sent, s.Gone, round(s.Without), round(s.Stalled), s.Broken, round(s.Pause), s.Failed, s.Tried, turned)
}
