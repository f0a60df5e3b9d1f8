package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/require"
)

// TestScale replaces pods of a small cluster and checks that each gets its route.
func TestScale(t *testing.T) {
	var b bytes.Buffer
	c := crowd{kinds: shortPlan().kinds, nodes: 20, pods: 5, pause: 20 * time.Millisecond, sample: time.Second}
	require.NoError(t, c.measure(t.Context(), &b))
	t.Logf("\n%s", &b)
	if !strings.HasPrefix(b.String(), "| 20 | 100 | ") {
		t.Errorf("row %q", &b)
	}
	expectNoChildren(t)
}
