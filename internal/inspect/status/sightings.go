package status

import (
	"slices"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/records"
)

const (
	// pollInterval is the interval at which Complete polls for the successor of a late report.
	pollInterval = 500 * time.Millisecond
	// maxClockSkew is the largest expected difference of clocks: an older report is late in any case.
	maxClockSkew = time.Minute
)

// age returns the age of a gateway's report. It is negative while the gateway's clock is so far ahead that the age is
// unknown until another report arrives.
func age(s *observe.Snapshot, id records.GatewayID) time.Duration {
	report, seen := s.Statuses[id], s.Sightings[id]
	known, written := s.At.Sub(seen.Since), s.At.Sub(report.Time)
	switch {
	case seen.Successor:
		return known
	case health.Late(written, time.Duration(report.Every)):
		return written
	}
	return max(written, known)
}

// awaitSuccessor reports whether a report that is late by the clocks may have a successor, after polling for the
// duration looked.
func (v *view) awaitSuccessor(looked time.Duration) bool {
	for name, p := range v.peerings {
		for i, o := range p.gateways {
			seen := v.Sightings[records.GatewayID{Peering: name, Number: i + 1}]
			late := o.Status != nil && health.Late(o.Age, o.Every) && o.Age < maxClockSkew
			if late && !seen.Successor && !health.Late(looked, o.Every) && health.StateOf(health.Gateway(o)) == health.Unknown {
				return true
			}
		}
	}
	return false
}

// missesGateway reports whether a gateway is missed.
func (v *view) missesGateway() bool {
	for _, p := range v.peerings {
		if slices.ContainsFunc(p.gateways, missed) {
			return true
		}
	}
	return false
}

// untilLate returns the time until the first report of a gateway is late, at most the duration most.
func untilLate(snapshots []*observe.Snapshot, most time.Duration) time.Duration {
	for _, s := range snapshots {
		for id, report := range s.Statuses {
			if rest := health.Life(time.Duration(report.Every)) - max(age(s, id), 0); rest > 0 {
				most = min(most, rest)
			}
		}
	}
	return most
}
