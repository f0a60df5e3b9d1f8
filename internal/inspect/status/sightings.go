package status

import (
	"slices"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

const (
	// lookEvery is how often Status looks for a report that is late.
	lookEvery = 500 * time.Millisecond
	// clocksApart is by how much clocks may differ: a report that is older is late for sure.
	clocksApart = time.Minute
)

// sightings are the reports of gateways as they were seen, by gateway. One that was seen to come has an age by one
// clock.
type sightings map[records.GatewayID]sighting

type sighting struct {
	report time.Time     // which report, by the gateway's clock
	every  time.Duration // after which the next one comes at the latest; zero: not stated
	since  time.Time     // when it was seen first
	came   bool          // another one was seen before it
}

// age is how old the report of a gateway is; negative: its clock is so far ahead that this is not known before another
// report is seen to come.
func (s sightings) age(id records.GatewayID, o health.Observation, now time.Time) time.Duration {
	last, known := s[id]
	if !known || !last.report.Equal(o.Status.Time) {
		last = sighting{o.Status.Time, o.Every, now, known}
		s[id] = last
	}
	if last.came {
		return now.Sub(last.since)
	}
	if age := now.Sub(last.report); health.Late(age, last.every) {
		return age
	}
	return max(now.Sub(last.report), now.Sub(last.since))
}

// mayFollow reports whether a report that is late by the clocks may still be followed by another, after looking for so
// long.
func (s sightings) mayFollow(p Peering, looked time.Duration) bool {
	return slices.ContainsFunc(p.Gateways, func(g Gateway) bool {
		last := s[records.GatewayID{Peering: p.Peer, Number: g.Number}]
		return g.State == health.Unknown && g.ReportAge != nil && *g.ReportAge < clocksApart && !last.came && !health.Late(looked, last.every)
	})
}

// untilLate is how long it takes until one of the reports is late, at most so long.
func (s sightings) untilLate(all []Peering, most time.Duration) time.Duration {
	for _, p := range all {
		for _, g := range p.Gateways {
			if g.ReportAge == nil {
				continue
			}
			if rest := health.Life(s[records.GatewayID{Peering: p.Peer, Number: g.Number}].every) - *g.ReportAge; rest > 0 {
				most = min(most, rest)
			}
		}
	}
	return most
}
