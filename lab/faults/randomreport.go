package faults

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// RandomReport is the result of random faults.
type RandomReport struct {
	Seed    uint64
	At      time.Time // of the last fault
	Took    time.Duration
	Samples []RandomSample
}

// randomTitle is the title of the section of random faults in the page of measurements, the last one.
const randomTitle = "## Random faults\n"

// Add adds a sample.
func (r *RandomReport) Add(s RandomSample) { r.Samples, r.At = append(r.Samples, s), s.At }

// Broken is the number of streams that broke.
func (r *RandomReport) Broken() (broken int) {
	for _, s := range r.Samples {
		broken += s.Broken
	}
	return broken
}

// Section writes the section of the page: a summary, and a table with the median and the worst of each kind.
func (r *RandomReport) Section(w io.Writer) error {
	lost, sent, repeated := 0, 0, 0
	var without, pause time.Duration
	for _, s := range r.Samples {
		lost, sent, repeated = lost+s.Lost, sent+s.Sent, repeated+s.Repeated
		without, pause = max(without, s.Without), max(pause, s.Pause)
	}
	fmt.Fprintf(w, `%s
%d faults in %s, one at a time, with %d gateways on each side: `+"`make chaos`"+` writes this section ([how](testing.md#random-faults)).
Measured: %s, seed %d. %d of %d packets lost, %s seconds without any of a path at most; %d streams broken, their longest pause
%s seconds. Faults repeated because the sender stalled for more than half a second: %d.

`, randomTitle, len(r.Samples), r.Took.Round(time.Second), RandomGateways, day(r.At), r.Seed, lost, sent, figure(without.Seconds()), r.Broken(),
		figure(pause.Seconds()), repeated) // Flush returns the error
	out := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	titles := []string{"fault", "faults"}
	for _, c := range columns {
		titles = append(titles, c.title)
	}
	titles = append(titles, "repeated")
	row(out, titles)
	row(out, slices.Repeat([]string{"---"}, len(titles)))
	for _, k := range RandomKinds() {
		of := slices.DeleteFunc(slices.Clone(r.Samples), func(s RandomSample) bool { return s.Fault != k.Name })
		if len(of) == 0 {
			continue
		}
		cells := []string{k.What, fmt.Sprint(len(of))}
		for _, c := range columns {
			var values []float64
			for _, s := range of {
				values = append(values, c.of(s.Sample))
			}
			slices.Sort(values)
			cells = append(cells, figure(values[len(values)/2])+" / "+figure(values[len(values)-1]))
		}
		repeated := 0
		for _, s := range of {
			repeated += s.Repeated
		}
		row(out, append(cells, fmt.Sprint(repeated)))
	}
	return out.Flush()
}

// WithRandom returns a page with the section of random faults of another page, if that has one.
func WithRandom(page, other string) string {
	own, _, _ := strings.Cut(page, "\n"+randomTitle)
	_, section, found := strings.Cut(other, randomTitle)
	if !found {
		return page
	}
	return strings.TrimRight(own, "\n") + "\n\n" + randomTitle + section
}
