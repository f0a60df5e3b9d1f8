package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestFloods floods gateways for some seconds: over a link with a delay, with a CPU quota, and with two gateways. Their
// memory stays below the limit of their containers, and another flow continues. In so short a sample the memory would
// stay below it without limits of buffers too: TestBuffersAreLimited of netops/tunnel covers these. With -short, as in
// a slow guest whose kernel has no quotas, there is one flood.
func TestFloods(t *testing.T) {
	strains := map[string]strain{"64 TCP streams": {}}
	if !testing.Short() {
		strains["64 TCP streams over 60 ms"] = strain{delay: 30 * time.Millisecond}
		strains["UDP, 1400 bytes"] = strain{gateways: 2}
		strains["UDP, 64 bytes"] = strain{quota: 0.2}
	}
	for name, s := range strains {
		t.Run(name, func(t *testing.T) { s.flood(t, name) })
	}
	expectNoChildren(t)
}

// flood measures the flood whose name is a prefix of name.
func (s strain) flood(t *testing.T, name string) {
	i := slices.IndexFunc(floods(), func(f flood) bool { return strings.HasPrefix(name, f.name) })
	s.kinds, s.sample, s.gateways = shortPlan().kinds, 3*time.Second, max(1, s.gateways)
	r, err := s.measure(t.Context(), floods()[i])
	require.NoError(t, err)
	require.NoError(t, r.write(t.Output(), name))
	if r.peak > clusters.MemoryLimit {
		t.Errorf("a gateway took %d MiB, want %d at most", r.peak>>20, clusters.MemoryLimit>>20)
	}
	if r.other == 0 {
		t.Error("nothing arrives of another flow")
	}
}
