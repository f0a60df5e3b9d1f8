package diagnose_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/inspect/diagnose"
	"liqonet.io/liqonet/internal/kube"
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
				s.LastEcho, s.Session = s.Time, records.Session{Since: s.Time, Usable: true}
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
			s.LastEcho, s.Session = s.Time.Add(-time.Hour), records.Session{}
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

// TestSnapshotIsLeftAsItWas: a diagnosis changes nothing of what was read, so that status and a second diagnosis judge
// the same.
func TestSnapshotIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "same", func(t *testing.T) {
		a, b := stopped(t)
		deny(a, kube.Permission{Verb: "list", Resource: "secrets", Namespace: a.Namespace})
		a.Fake.PrependReactor("list", "services", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "", nil)
		})
		here, there := diagnose.Read(t.Context(), a.Cluster), diagnose.Read(t.Context(), b.Cluster)
		before := maps.Clone(here.Errors)
		first, err := diagnose.Of("", here, there)
		require.NoError(t, err)
		if !maps.Equal(before, here.Errors) {
			t.Errorf("errors were %v, and are %v", before, here.Errors)
		}
		second, err := diagnose.Of("", here, there)
		require.NoError(t, err)
		if !slices.Equal(first.Checks, second.Checks) {
			t.Errorf("%+v, then %+v", first.Checks, second.Checks)
		}
	})
}
