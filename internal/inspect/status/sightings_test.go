package status

import (
	"testing"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

// TestReportWithFutureTime checks that a report with a time in the future has no known age and counts once a successor
// arrives.
func TestReportWithFutureTime(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for ahead, first := range map[time.Duration]health.State{2 * time.Second: health.Connecting, time.Hour: health.Unknown, 50 * 365 * 24 * time.Hour: health.Unknown} {
		s := make(sightings)
		o := health.Observation{Status: &records.Status{Time: now.Add(ahead)}}
		look := func(after time.Duration) Peering {
			seen := o
			seen.Age = s.age(records.GatewayID{Peering: "b", Number: 1}, o, now.Add(after))
			return describeStatus(records.Peering{Name: "b"}, []health.Observation{seen}, nil)
		}
		if v := look(0); v.State != first || s.awaitsSuccessor(v, 0) != (first == health.Unknown) {
			t.Errorf("%s ahead: %s (%s), and it may follow: %v", ahead, v.State, v.Reason, s.awaitsSuccessor(v, 0))
		}
		if v := look(time.Minute); v.State != health.Unknown || s.awaitsSuccessor(v, time.Minute) {
			t.Errorf("%s ahead, a minute later without another report: %s", ahead, v.State)
		}
		o.Status = &records.Status{Time: o.Status.Time.Add(time.Second)}
		if v := look(time.Minute); v.State == health.Unknown || s.awaitsSuccessor(v, time.Minute) {
			t.Errorf("%s ahead, after another report: %s (%s)", ahead, v.State, v.Reason)
		}
	}
}
