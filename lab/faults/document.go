package faults

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// introduction is the beginning of a document of measurements.
const introduction = `# Faults

What faults cost a peering. ` + "`make faults`" + ` measures it and writes this page ([how](testing.md#faults)); do not edit it. Each row has the
median and the worst run. A packet is sent every ten milliseconds; *seconds without* is the longest time in which all were lost,
*sender stalled* the longest time in which the machine that runs both clusters sent none: what is not longer may be the machine's.
The row *none* is a run without a fault. Times of *status* begin with the fault. Streams are TCP connections that last.

The aims: a planned change loses no packet. A gateway that ends without notice costs half a second, one whose node loses power one
second, two at worst. No stream breaks.
`

// Files reads the runs in the files faults-GATEWAYS.json and faults-GATEWAYS-LAB.json of a folder, by the number of
// gateways. LAB is the name of a lab; the files of one number are merged.
func Files(folder string) (map[int]*Report, error) {
	names, err := filepath.Glob(filepath.Join(folder, "faults-*.json"))
	reports := make(map[int]*Report)
	for _, name := range names {
		number, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(filepath.Base(name), ".json"), "faults-"), "-")
		gateways, parseErr := strconv.Atoi(number)
		if parseErr != nil {
			continue
		}
		r, openErr := OpenReport(name)
		if openErr != nil {
			err = errors.Join(err, openErr)
			continue
		}
		if have := reports[gateways]; have != nil {
			r.samples = append(have.samples, r.samples...)
		}
		reports[gateways] = r
	}
	return reports, err
}

// Document writes the page of all reports.
func Document(w io.Writer, reports map[int]*Report) error {
	if _, err := io.WriteString(w, introduction); err != nil {
		return err
	}
	for _, gateways := range slices.Sorted(maps.Keys(reports)) {
		r := reports[gateways]
		if len(r.samples) == 0 {
			continue
		}
		at := func(a, b Sample) int { return a.At.Compare(b.At) }
		days := slices.Compact([]string{day(slices.MinFunc(r.samples, at).At), day(slices.MaxFunc(r.samples, at).At)})
		title := "One gateway"
		if gateways > 1 {
			title = fmt.Sprintf("%d gateways", gateways)
		}
		if _, err := fmt.Fprintf(w, "\n## %s on each side\n\nMeasured: %s.\n\n", title, strings.Join(days, " to ")); err != nil {
			return err
		}
		if err := r.Table(w, All()); err != nil {
			return err
		}
	}
	return nil
}

func day(t time.Time) string { return t.Format("2 January 2006") }
