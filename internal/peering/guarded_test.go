package peering

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/status"
)

// TestGuardedRanges: they are what status says of each peer's pods and external addresses.
func TestGuardedRanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connected(t)
		ranges, port, err := status.Guarded(t.Context(), a.Cluster)
		if err != nil || port != records.DefaultOverlayPort {
			t.Fatal(port, err)
		}
		all, err := status.Read(t.Context(), status.Options{Cluster: a.Cluster})
		if err != nil {
			t.Fatal(err)
		}
		if len(ranges) != len(all[0].Mappings) {
			t.Errorf("ranges %v, and mappings %v", ranges, all[0].Mappings)
		}
		for _, m := range all[0].Mappings {
			if !slices.Contains(ranges, m.Seen) {
				t.Errorf("%s are not in %v", m.Seen, ranges)
			}
		}
	})
}

func TestNothingToGuard(t *testing.T) {
	a, _ := twoWorlds()
	ranges, _, err := status.Guarded(t.Context(), a.Cluster)
	var hint interface{ Hint() string }
	if !errors.As(err, &hint) || hint.Hint() == "" {
		t.Errorf("ranges %v, error %v", ranges, err)
	}
}
