package pathtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"liqonet.io/liqonet/internal/progress"
)

// measured returns the report of a measurement, if it queries the right server: the peer's pod, or its node.
func (w *fakeCluster) measured(args []string, host bool) string {
	i := slices.Index(args, "--meter")
	want := map[string]string{"a": "10.71.0.5:7000", "b": "10.72.0.5:7000"}[w.Context]
	if host {
		want = "10.244.0.5:6094" // the fake kubelet's pods all have one address
	}
	if args[i+1] != want || host && w.nodesIsolated || !host && w.podsIsolated {
		return fmt.Sprintf(`{"failed":"no answer from %s"}`, args[i+1])
	}
	if host {
		return `{"streamBitsPerSecond":2e9,"streamsBitsPerSecond":4e9,"p50Seconds":0.0001,"p90Seconds":0.0002,"p99Seconds":0.0003,"connectionsPerSecond":1000}`
	}
	return `{"streamBitsPerSecond":1e9,"streamsBitsPerSecond":1e9,"p50Seconds":0.0002,"p90Seconds":0.0005,"p99Seconds":0.0009,"connectionsPerSecond":500}`
}

// A measurement covers one pair of nodes in both directions by default, and leaves no objects.
func TestMeasure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoClusters(t)
		runKubelets(t, a, b)
		o := options(a, b)
		o.Streams = 8
		r, err := Run(t.Context(), o, progress.Quiet{})
		if err != nil || !r.Passed || len(r.Performance) != 2 || len(r.Checks) > 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		p := r.Performance[1]
		if p.From.Node != "b-1" || p.To.Node != "a-1" || p.Streams != 8 || *p.Ratios != (Ratios{0.5, 0.25, 2, 2.5, 3, 0.5}) {
			t.Errorf("%+v, ratios %+v", p, p.Ratios)
		}
		expectNothingLeft(t, a, b)
		o.Nodes, a.nodesIsolated, b.nodesIsolated = 2, true, true
		r, err = Run(t.Context(), o, progress.Quiet{})
		if err != nil || !r.Passed || len(r.Performance) != 4 || r.Performance[3].From.Node != "b-2" {
			t.Fatalf("%+v, %v", r, err)
		}
		if p := r.Performance[0]; p.Direct != nil || p.Ratios != nil || p.Unreached == "" || p.Tunnel == nil {
			t.Errorf("nodes that do not reach each other: %+v", p)
		}
		expectNothingLeft(t, a, b)
	})
}

// A measurement that is interrupted in either part leaves no objects. If pods do not reach each other, it fails.
func TestMeasureThatFails(t *testing.T) {
	for _, part := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			a, b := twoClusters(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			probes := 0
			a.probed = func() {
				if probes++; probes == part {
					a.hung = true
					cancel()
				}
			}
			runKubelets(t, a, b)
			o := options(a, b)
			o.Streams, o.Nodes = 1, 2
			if _, err := Run(ctx, o, progress.Quiet{}); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			expectNothingLeft(t, a, b)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		a, b := twoClusters(t)
		runKubelets(t, a, b)
		o := options(a, b)
		o.Streams = 1
		b.podsIsolated = true
		r, err := Run(t.Context(), o, progress.Quiet{})
		if err != nil || r.Passed || r.Performance[1].Failed == "" || r.Performance[1].Ratios != nil || r.Performance[1].Direct == nil {
			t.Errorf("%+v, %v", r, err)
		}
	})
}
