package status

import (
	"testing"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/records"
)

// TestReportWithFutureTime checks that a report with a time in the future has no known age and counts once a successor
// arrives.
func TestReportWithFutureTime(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	id := records.GatewayID{Peering: "b", Number: 1}
	for ahead, first := range map[time.Duration]health.State{2 * time.Second: health.Connecting, time.Hour: health.Unknown, 50 * 365 * 24 * time.Hour: health.Unknown} {
		s := &observe.Snapshot{Statuses: map[records.GatewayID]*records.Status{id: {Time: now.Add(ahead)}}, Sightings: map[records.GatewayID]observe.Sighting{id: {Since: now}}}
		look := func(after time.Duration) (state health.State, awaits bool) {
			s.At = now.Add(after)
			o := health.Observation{Status: s.Statuses[id], Age: age(s, id)}
			v := view{Snapshot: s, peerings: map[string]*peeringView{"b": {gateways: []health.Observation{o}}}}
			return describeStatus(records.Peering{Name: "b"}, []health.Observation{o}, nil).State, v.awaitSuccessor(after)
		}
		if state, awaits := look(0); state != first || awaits != (first == health.Unknown) {
			t.Errorf("%s ahead: %s, and it may follow: %v", ahead, state, awaits)
		}
		if state, awaits := look(time.Minute); state != health.Unknown || awaits {
			t.Errorf("%s ahead, a minute later without another report: %s", ahead, state)
		}
		s.Statuses[id] = &records.Status{Time: s.Statuses[id].Time.Add(time.Second)}
		s.Sightings[id] = observe.Sighting{Since: now.Add(time.Minute), Successor: true}
		if state, awaits := look(time.Minute); state == health.Unknown || awaits {
			t.Errorf("%s ahead, after another report: %s", ahead, state)
		}
	}
}
