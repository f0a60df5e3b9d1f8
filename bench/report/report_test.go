package report

import (
	"bytes"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/require"
)

func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		values []float64
		q      float64
		want   float64
	}{
		{[]float64{7}, 0.5, 7},
		{[]float64{3, 1, 2}, 0.5, 2},
		{[]float64{4, 1, 3, 2}, 0.5, 2.5},
		{[]float64{5, 4, 3, 2, 1}, 0.25, 2},
		{[]float64{5, 4, 3, 2, 1}, 0.75, 4},
		{[]float64{1, 2}, 0, 1},
		{[]float64{1, 2}, 1, 2},
		{[]float64{0, 100}, 0.99, 99},
	} {
		values := append([]float64(nil), c.values...)
		if got := Quantile(values, c.q); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("Quantile(%v, %v) = %v, want %v", c.values, c.q, got, c.want)
		}
		if !cmp.Equal(values, c.values) {
			t.Errorf("Quantile changed the order of %v to %v", c.values, values)
		}
	}
	if got := Quantile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("Quantile of nothing = %v, want NaN", got)
	}
}

// example has a disturbed second round, in which both paths reached half of their speed.
func example() Report {
	r := Report{
		Kernel: "Linux 6.12", Overlay: "geneve", WireGuard: "kernel", Rounds: 3, Seconds: 0.5,
		Paths: []string{"baseline", "liqonet"},
		Metrics: []Metric{
			{Name: "TCP", Unit: "Mbit/s", Samples: map[string][]float64{"baseline": {1000, 500, 1010}, "liqonet": {980, 490, 1000}}},
			{Name: "round trip", Unit: "µs", LessIsBetter: true, Samples: map[string][]float64{"baseline": {80, 160, 82}, "liqonet": {100, 200, 102}}},
		},
	}
	r.Compare(Ratio{Of: "liqonet", To: "baseline", Aim: 0.97}, Ratio{Of: "liqonet", To: "tunnel", Aim: 0.9})
	return r
}

func TestCompare(t *testing.T) {
	want := []Ratio{{Of: "liqonet", To: "baseline", Aim: 0.97, Each: []Share{
		{Low: 0.98, Median: 0.98, High: 0.985}, // 0.98, 0.98, 0.9901
		{Low: 0.8, Median: 0.8, High: 0.802},   // 0.8, 0.8, 0.8039
	}}}
	assert.Equal(t, "ratios", want, example().Ratios, cmpopts.EquateApprox(0, 1e-3))
}

func TestText(t *testing.T) {
	var got bytes.Buffer
	require.NoError(t, example().WriteText(&got))
	golden.Check(t, "table.golden", got.String())
}

func TestSignificant(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.000", 0.1234: "0.123", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 12345.6: "12346",
	} {
		if got := significant(v); got != want {
			t.Errorf("significant(%v) = %q, want %q", v, got, want)
		}
	}
}
