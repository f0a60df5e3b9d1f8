//go:build linux

package node

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/sample"
)

// TestManyDamagedRecordsAreReportedOnce checks that the report does not depend on the order of the store: otherwise it
// would be written in each pass.
func TestManyDamagedRecordsAreReportedOnce(t *testing.T) {
	w := newFakeCluster(t)
	for i := range 2 * helper.MaxFaults {
		w.put(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: records.PeeringName(fmt.Sprintf("garbage-%d", i)), Namespace: sample.Namespace},
			Data:       map[string]string{records.DataKey: strings.Repeat("x", i+1)},
		})
	}
	var log bytes.Buffer
	m := helper.NewMetrics()
	l := helper.NewReconciler(nil, slog.New(slog.NewTextHandler(&log, nil)), m)
	var events []string
	l.Event = func(_, message string) { events = append(events, message) }
	first, faults := w.memory.view(w.objects, w.now)
	l.ReportFaults(faults)
	// All records, and the missing fabric.
	if n := strings.Count(log.String(), "read ConfigMap"); n != helper.MaxFaults || !strings.Contains(log.String(), fmt.Sprintf("and %d more", helper.MaxFaults+1)) {
		t.Errorf("%d faults are logged, want %d", n, helper.MaxFaults)
	}
	if len(events) != 1 || strings.Count(events[0], "read ConfigMap") != helper.MaxFaults {
		t.Errorf("events %q", events)
	}
	families, err := m.Registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if n := len(f.GetMetric()); f.GetName() == "liqonet_records_refused" && n != helper.MaxFaults {
			t.Errorf("%d series, want %d", n, helper.MaxFaults)
		}
	}
	log.Reset()
	slices.Reverse(w.objects.maps)
	again, faults := w.memory.view(w.objects, w.now)
	l.ReportFaults(faults)
	assert.Equal(t, "the report changes", first.refused, again.refused)
	if log.Len() > 0 || len(events) > 1 {
		t.Errorf("reported again: %q\n%s", events, &log)
	}
}
