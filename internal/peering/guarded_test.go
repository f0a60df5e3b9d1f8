package peering

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

// TestGuardedRanges: they are what status says of each peer's pods and external addresses.
func TestGuardedRanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := connected(t)
		side := Side{Cluster: a.Cluster}
		ranges, err := GuardedRanges(t.Context(), side)
		if err != nil {
			t.Fatal(err)
		}
		all, err := Status(t.Context(), StatusOptions{Side: side})
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
	ranges, err := GuardedRanges(t.Context(), Side{Cluster: a.Cluster})
	var hint interface{ Hint() string }
	if !errors.As(err, &hint) || hint.Hint() == "" {
		t.Errorf("ranges %v, error %v", ranges, err)
	}
}
