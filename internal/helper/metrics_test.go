//go:build linux

package helper

import (
	"testing"

	"liqonet.io/liqonet/internal/testbed/require"
)

// total returns the value of a counter; with labels, the sum.
func (m *metrics) total(t *testing.T, name string) float64 {
	t.Helper()
	families, err := m.registry.Gather()
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
