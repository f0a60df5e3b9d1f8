package status

import (
	"time"

	"liqonet.io/liqonet/internal/health"
)

const (
	// lookEvery is how often Status looks for a report that is late.
	lookEvery = 500 * time.Millisecond
	// clocksApart is by how much clocks may differ: a report that is older is late for sure.
	clocksApart = time.Minute
)

// sightings are the reports of gateways as they were seen, by peering. One that was seen to come has an age by one clock.
type sightings map[string]sighting

type sighting struct {
	report time.Time     // which report, by the gateway's clock
	every  time.Duration // after which the next one comes at the latest; zero: not stated
	since  time.Time     // when it was seen first
	came   bool          // another one was seen before it
}

// age is how old the report of a peering is; negative: its clock is so far ahead that this is not known before another
// report is seen to come.
func (s sightings) age(peering string, p *peeringSnapshot, now time.Time) time.Duration {
	last, known := s[peering]
	if !known || !last.report.Equal(p.Status.Time) {
		last = sighting{p.Status.Time, p.Every, now, known}
		s[peering] = last
	}
	if last.came {
		return now.Sub(last.since)
	}
	if age := now.Sub(last.report); health.Late(age, last.every) {
		return age
	}
	return max(now.Sub(last.report), now.Sub(last.since))
}

// mayFollow reports whether a report that is late by the clocks may still be followed by another, after looking for so long.
func (s sightings) mayFollow(p Peering, looked time.Duration) bool {
	last := s[p.Peer]
	return p.State == health.Unknown && p.ReportAge < clocksApart && !last.came && !health.Late(looked, last.every)
}

// untilLate is how long it takes until one of the reports is late, at most so long.
func (s sightings) untilLate(all []Peering, most time.Duration) time.Duration {
	for _, p := range all {
		if rest := health.Life(s[p.Peer].every) - p.ReportAge; rest > 0 {
			most = min(most, rest)
		}
	}
	return most
}
