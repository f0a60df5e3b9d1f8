package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// WriteText writes the report as a table: the medians of each metric by path, then the ratios with their quartiles.
func (r Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s, %s WireGuard: medians of %d rounds, %g s each\n\n", r.Kernel, r.Overlay, r.WireGuard, r.Rounds, r.Seconds)
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(cells ...string) { _, _ = fmt.Fprintln(table, strings.Join(cells, "\t")+"\t") }
	row(append([]string{"", ""}, r.Paths...)...)
	for _, m := range r.Metrics {
		cells := []string{m.Name, m.Unit}
		for _, p := range r.Paths {
			cells = append(cells, significant(Quantile(m.Samples[p], 0.5)))
		}
		row(cells...)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(r.Ratios) > 0 {
		b.WriteString("\nratios of rounds, median and quartiles; more than 1 is better\n\n")
	}
	r.writeRatios(row)
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r Report) writeRatios(row func(cells ...string)) {
	if len(r.Ratios) == 0 {
		return
	}
	header, aims := []string{""}, []string{"aim"}
	for _, ratio := range r.Ratios {
		header = append(header, ratio.Of+" / "+ratio.To)
		aim := "none"
		if ratio.Aim > 0 {
			aim = "at least " + strconv.FormatFloat(ratio.Aim, 'f', 2, 64)
		}
		aims = append(aims, aim)
	}
	row(header...)
	row(aims...)
	for i, m := range r.Metrics {
		cells := []string{m.Name}
		for _, ratio := range r.Ratios {
			s := ratio.Each[i]
			cells = append(cells, fmt.Sprintf("%.3f (%.3f to %.3f)", s.Median, s.Low, s.High))
		}
		row(cells...)
	}
}

// significant formats a value with three significant digits, without an exponent.
func significant(v float64) string {
	digits := 0
	for limit := 100.0; digits < 3 && v < limit; limit /= 10 {
		digits++
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}
