package diagnose_test

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/diagnose"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/pathtest"
	"liqonet.io/liqonet/internal/pathtest/probe"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// causes are what failed without another failure that explains it, and what warns.
func causes(r diagnose.Result) []string {
	found := make(map[string]bool)
	for _, f := range r.Checks {
		id := f.ID
		if f.State == diagnose.Warning {
			id += "?"
		}
		if f.Cluster != "a" {
			id += "/" + f.Cluster
		}
		found[id] = found[id] || f.State == diagnose.Failed || f.State == diagnose.Warning
	}
	maps.DeleteFunc(found, func(_ string, cause bool) bool { return !cause })
	return slices.Sorted(maps.Keys(found))
}

// probedFaults are results of packets between the clusters of --probe, with what fails by them.
var probedFaults = map[string]struct {
	lost []pathtest.Check
	want string
}{
	"packets of pods are lost":       {lost("a", probe.UDP), "LQ-PATH-PACKETS"},
	"packets of the peer's are lost": {lost("b", probe.TCP), "LQ-PATH-PACKETS/b"},
	"pods are masqueraded":           {lost("a", "source"), "LQ-PATH-SOURCE"},
	"none are lost":                  {nil, ""},
}

// lost returns a check of packets of a cluster that failed.
func lost(cluster string, name probe.Check) []pathtest.Check {
	return []pathtest.Check{{From: pathtest.End{Cluster: cluster, Kind: pathtest.Pod, Node: "n"}, Name: name, State: pathtest.Failed}}
}

// TestDiagnose: of two healthy clusters no check fails or warns; each fault fails its own check, and all others that
// fail follow from it. Of every check there is a fault that fails it, and of every finding that changes the state of a
// peering one that raises it.
func TestDiagnose(t *testing.T) {
	t.Parallel()
	diagnosed := func(t *testing.T, a, b *fakecluster.Cluster) diagnose.Result {
		t.Helper()
		r, err := diagnose.Run(t.Context(), diagnose.Options{Cluster: a.Cluster, Remote: b.Cluster}, progress.Quiet{})
		require.NoError(t, err)
		return r
	}
	bubble.Run(t, "healthy", func(t *testing.T) {
		a, b := stopped(t)
		if got := diagnosed(t, a, b); len(causes(got)) > 0 || !got.Passed || got.Count(diagnose.Skipped) > 6 {
			t.Errorf("%+v", got)
		}
	})
	expect := func(t *testing.T, fault string, r diagnose.Result, want string) {
		t.Helper()
		t.Logf("%s:", fault)
		for _, f := range r.Checks {
			if f.State != diagnose.Passed {
				t.Logf("%s %s %s: %s; fix: %s; follows %s", f.State, f.ID, f.Subject(), f.Observed, f.Fix, f.Follows)
			}
		}
		if causes := causes(r); strings.Join(causes, " ") != want {
			t.Errorf("%s: causes %q, want %q", fault, causes, want)
		}
	}
	failed, raised := make(map[string]bool), make(map[health.Code]bool)
	add := func(want string) {
		id, _, _ := strings.Cut(strings.TrimSuffix(want, "?"), "/")
		failed[id] = true
	}
	bubble.Run(t, "probed", func(t *testing.T) {
		a, b := stopped(t)
		here, there := diagnose.Read(t.Context(), a.Cluster), diagnose.Read(t.Context(), b.Cluster)
		for name, fault := range probedFaults {
			r, err := diagnose.OfProbed(fault.lost, here, there)
			require.NoError(t, err)
			expect(t, name, r, fault.want)
			add(fault.want)
		}
	})
	bubble.Run(t, "faults", func(t *testing.T) {
		healthyA, healthyB := stopped(t)
		began := time.Now()
		for name, fault := range diagnosedFaults {
			a, b := copies(t, healthyA, healthyB)
			later(t, a, "b", time.Since(began)) // some faults are waited for
			later(t, b, "a", time.Since(began))
			fault.inject(t, a, b)
			there := diagnose.Read(t.Context(), b.Cluster)
			here := diagnose.Read(t.Context(), a.Cluster) // which may wait until the report of b is old
			r, err := diagnose.Of("", here, there)
			require.NoError(t, err)
			expect(t, name, r, fault.want)
			add(fault.want)
			all, _ := status.Of("", here)
			for _, p := range all {
				for _, finding := range p.Findings {
					raised[finding.Code] = true
				}
			}
		}
	})
	for _, c := range diagnose.Table() {
		if !failed[c.ID] {
			t.Errorf("no fault fails %s", c.ID)
		}
	}
	for _, kind := range slices.Concat(health.Kinds(), status.Kinds()) {
		if !raised[kind.Code] {
			t.Errorf("no fault raises %s", kind.Code)
		}
	}
}

// TestEachKindIsListedOnce: the number of requests does not grow with that of gateways and peerings.
func TestEachKindIsListedOnce(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "once", func(t *testing.T) {
		a, _ := stopped(t)
		a.Fake.ClearActions()
		_, err := diagnose.Run(t.Context(), diagnose.Options{Cluster: a.Cluster}, progress.Quiet{})
		require.NoError(t, err)
		lists := map[string]int{}
		for _, action := range a.Fake.Actions() {
			if action.GetNamespace() == a.Namespace {
				lists[action.GetVerb()+" "+action.GetResource().Resource]++
			}
		}
		for _, kind := range []string{"configmaps", "leases", "pods", "events", "secrets", "deployments", "services", "networkpolicies"} {
			if n := lists["list "+kind]; n != 1 {
				t.Errorf("%s are listed %d times", kind, n)
			}
		}
		if lists["get secrets"]+lists["get configmaps"] > 0 {
			t.Errorf("some are asked for by name: %v", lists)
		}
	})
}

// refusing is a transport to an API server that is not there.
type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

// TestDiagnoseUnreached: an API server that does not answer is the only failure of its cluster, and the other one is
// checked.
func TestDiagnoseUnreached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := stopped(t)
		gone, err := kube.Open(&rest.Config{Host: "https://192.0.2.1", Transport: refusing{}}, kube.Options{Context: "b"})
		require.NoError(t, err)
		r, err := diagnose.Run(t.Context(), diagnose.Options{Cluster: a.Cluster, Remote: gone}, progress.Quiet{})
		if err != nil || r.Passed || r.Count(diagnose.Passed) < 20 {
			t.Errorf("%v, %+v", err, r)
		}
		for _, f := range r.Checks {
			want := f.State == diagnose.Passed || f.State == diagnose.Skipped || f.State == diagnose.Following && f.Follows == "LQ-API-REACHABLE"
			if !want && f.ID != "LQ-API-REACHABLE" {
				t.Errorf("%+v", f)
			}
		}
	})
}
