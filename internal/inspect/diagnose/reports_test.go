package diagnose_test

import (
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/inspect/diagnose"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestLateReport: where status waits for a gateway's next report, which comes, all facts are still there.
func TestLateReport(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "late", func(t *testing.T) {
		a, _ := stopped(t)
		report := func(ago time.Duration) {
			a.ChangeStatus(t, "b", func(s *records.Status) { // as the gateway sees it, all is fresh
				s.Time = time.Now().Add(-ago)
				s.LastEcho, s.LastHandshake = s.Time, s.Time
				for i := range s.Nodes {
					s.Nodes[i].LastEcho, s.Nodes[i].LastProof = s.Time, s.Time
				}
			})
		}
		report(20 * time.Second)
		time.AfterFunc(time.Second, func() { report(0) })
		began := time.Now()
		r, err := diagnose.Run(t.Context(), diagnose.Options{Cluster: a.Cluster}, progress.Quiet{})
		require.NoError(t, err)
		if time.Since(began) < time.Second {
			t.Error("status did not wait")
		}
		for _, f := range r.Checks {
			if f.State == diagnose.Failed || f.State == diagnose.Skipped && strings.Contains(f.Observed, "it was not read") {
				t.Errorf("%s: %s: %s", f.ID, f.State, f.Observed)
			}
		}
	})
}

// TestFutureReport: what the report of a clock that is ahead has of tunnels and nodes is not known to be so now, and no
// check passes by it.
func TestFutureReport(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "future", func(t *testing.T) {
		a, _ := stopped(t)
		a.ChangeStatus(t, "b", func(s *records.Status) {
			s.Time = time.Now().Add(time.Hour)
			s.LastEcho, s.LastHandshake = s.Time.Add(-time.Hour), time.Time{}
		})
		r, err := diagnose.Run(t.Context(), diagnose.Options{Cluster: a.Cluster}, progress.Quiet{})
		require.NoError(t, err)
		for _, f := range r.Checks {
			if f.Layer == diagnose.Tunnel && f.State != diagnose.Skipped || f.ID == "LQ-API-CLOCK" && f.State != diagnose.Failed {
				t.Errorf("%s: %s: %s", f.ID, f.State, f.Observed)
			}
		}
	})
}
