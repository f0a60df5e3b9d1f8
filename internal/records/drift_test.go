package records

import (
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/assert"
)

func TestDriftAdd(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var d Drift
	for _, test := range []struct {
		objects []string
		want    Drift
	}{
		{nil, Drift{}},
		{[]string{"rule 104 table 7600"}, Drift{1, at, "rule 104 table 7600"}},
		{nil, Drift{1, at, "rule 104 table 7600"}},
		{[]string{"link lqn-overlay", "address", "route"}, Drift{2, at, "link lqn-overlay, and 2 more"}},
		{[]string{strings.Repeat("x", 1000), "y"}, Drift{3, at, strings.Repeat("x", 100) + " …, and 1 more"}},
	} {
		d = d.Add(at, test.objects)
		if d != test.want {
			t.Errorf("after %q: %+v, want %+v", test.objects, d, test.want)
		}
		assert.NoError(t, d.validate())
	}
	if (Drift{Times: -1}).validate() == nil || (Drift{What: strings.Repeat("x", 1000)}).validate() == nil {
		t.Error("a drift that makes no sense is valid")
	}
}
