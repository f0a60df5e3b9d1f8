package status

import (
	"slices"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

const (
	// pollInterval is the interval at which Read polls for the successor of a late report.
	pollInterval = 500 * time.Millisecond
	// maxClockSkew is the largest expected difference of clocks: an older report is late in any case.
	maxClockSkew = time.Minute
)

// sightings are the observed reports of gateways. The age of a report whose arrival was observed is measured with the
// local clock alone.
type sightings map[records.GatewayID]sighting

type sighting struct {
	report    time.Time     // time of the report, by the gateway's clock
	every     time.Duration // longest interval to the next report; zero if not in the report
	since     time.Time     // when it was first observed
	successor bool          // an earlier report was observed before it
}

// age returns the age of a gateway's report. It is negative while the gateway's clock is so far ahead that the age is
// unknown until another report arrives.
func (s sightings) age(id records.GatewayID, o health.Observation, now time.Time) time.Duration {
	last, known := s[id]
	if !known || !last.report.Equal(o.Status.Time) {
		last = sighting{o.Status.Time, o.Every, now, known}
		s[id] = last
	}
	if last.successor {
		return now.Sub(last.since)
	}
	if age := now.Sub(last.report); health.Late(age, last.every) {
		return age
	}
	return max(now.Sub(last.report), now.Sub(last.since))
}

// awaitsSuccessor reports whether a report that is late by the clocks may have a successor, after polling for the
// duration looked.
func (s sightings) awaitsSuccessor(p Peering, looked time.Duration) bool {
	return slices.ContainsFunc(p.Gateways, func(g Gateway) bool {
		last := s[records.GatewayID{Peering: p.Peer, Number: g.Number}]
		return g.State == health.Unknown && g.ReportAge != nil && time.Duration(*g.ReportAge) < maxClockSkew && !last.successor && !health.Late(looked, last.every)
	})
}

// untilLate returns the time until the first of the reports is late, at most the duration most.
func (s sightings) untilLate(all []Peering, most time.Duration) time.Duration {
	for _, p := range all {
		for _, g := range p.Gateways {
			if g.ReportAge == nil {
				continue
			}
			if rest := health.Life(s[records.GatewayID{Peering: p.Peer, Number: g.Number}].every) - time.Duration(*g.ReportAge); rest > 0 {
				most = min(most, rest)
			}
		}
	}
	return most
}
