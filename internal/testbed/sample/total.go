package sample

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"liqonet.io/liqonet/internal/testbed/require"
)

// Total returns the value of a counter; with labels, the sum.
func Total(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, metric := range f.GetMetric() {
			sum += metric.GetCounter().GetValue()
		}
	}
	return sum
}
