//go:build linux

package helper

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestManyDamagedRecordsAreReportedOnce checks that the report does not depend on the order of the store: otherwise it
// would be written in each pass.
func TestManyDamagedRecordsAreReportedOnce(t *testing.T) {
	w := newFakeCluster(t)
	for i := range 2 * maxFaults {
		w.put(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: records.PeeringName(fmt.Sprintf("garbage-%d", i)), Namespace: testNamespace},
			Data:       map[string]string{records.DataKey: strings.Repeat("x", i+1)},
		})
	}
	var log bytes.Buffer
	l := &reconciler{metrics: newMetrics(), log: slog.New(slog.NewTextHandler(&log, nil))}
	var events []string
	first, faults := w.memory.view(w.objects, w.now)
	l.reportFaults(faults, func(message string) { events = append(events, message) })
	// All records, and the missing fabric.
	if n := strings.Count(log.String(), "read ConfigMap"); n != maxFaults || !strings.Contains(log.String(), fmt.Sprintf("and %d more", maxFaults+1)) {
		t.Errorf("%d faults are logged, want %d", n, maxFaults)
	}
	if len(events) != 1 || strings.Count(events[0], "read ConfigMap") != maxFaults {
		t.Errorf("events %q", events)
	}
	families, err := l.metrics.registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if n := len(f.GetMetric()); f.GetName() == "liqonet_records_refused" && n != maxFaults {
			t.Errorf("%d series, want %d", n, maxFaults)
		}
	}
	log.Reset()
	slices.Reverse(w.objects.maps)
	again, faults := w.memory.view(w.objects, w.now)
	l.reportFaults(faults, func(message string) { events = append(events, message) })
	assert.Equal(t, "the report changes", first.refused, again.refused)
	if log.Len() > 0 || len(events) > 1 {
		t.Errorf("reported again: %q\n%s", events, &log)
	}
}

// TestGatewayReportsSomeOfManyFaults bounds the reported faults: with the token of a node, any number of Leases can be
// created.
func TestGatewayReportsSomeOfManyFaults(t *testing.T) {
	var log bytes.Buffer
	l := &reconciler{metrics: newMetrics(), log: slog.New(slog.NewTextHandler(&log, nil))}
	var refused []fault
	for i := range 10_000 {
		refused = append(refused, fault{Err: fmt.Errorf("read Lease node-%d: %w", i, errors.New("damaged document"))})
	}
	l.reportFaults(refused, func(string) {})
	if !strings.Contains(log.String(), "and 9950 more") || log.Len() > 100*maxFaults {
		t.Errorf("logged %d bytes: %.200s", log.Len(), &log)
	}
}
