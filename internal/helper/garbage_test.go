//go:build linux

package helper

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
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
	for i := range 2 * faultsTold {
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
	if n := strings.Count(log.String(), "read ConfigMap"); n != faultsTold || !strings.Contains(log.String(), fmt.Sprintf("and %d more", faultsTold+1)) {
		t.Errorf("%d faults are logged, want %d", n, faultsTold)
	}
	if len(events) != 1 || strings.Count(events[0], "read ConfigMap") != faultsTold {
		t.Errorf("events %q", events)
	}
	families, err := l.metrics.registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if n := len(f.GetMetric()); f.GetName() == "liqonet_records_refused" && n != faultsTold {
			t.Errorf("%d series, want %d", n, faultsTold)
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
	if !strings.Contains(log.String(), "and 9950 more") || log.Len() > 100*faultsTold {
		t.Errorf("logged %d bytes: %.200s", log.Len(), &log)
	}
}

// TestNoSecretsOfPods checks that a helper stores no settings of pods' containers.
func TestNoSecretsOfPods(t *testing.T) {
	text, err := json.Marshal(trimmed(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", Annotations: map[string]string{"token": "planted-1"}},
		Spec: corev1.PodSpec{
			NodeName: "a-1", Containers: []corev1.Container{{Name: "c", Args: []string{"planted-2"}, Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "planted-3"}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.244.0.7"}}},
	}, true))
	if err != nil || !strings.Contains(string(text), "10.244.0.7") || strings.Contains(string(text), "planted") {
		t.Errorf("%v: a helper has %s", err, text)
	}
}

// TestLongReportsAreNotKept checks that they take no memory in gateways.
func TestLongReportsAreNotKept(t *testing.T) {
	maxReport := records.MaxSize(records.ComponentNode)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		records.AnnotationNode: strings.Repeat("x", maxReport+1), "sound": strings.Repeat("x", maxReport),
	}}}
	kept := trimmed(lease, true).(*coordinationv1.Lease).Annotations
	if n := len(kept[records.AnnotationNode]); n > 100 {
		t.Errorf("%d bytes are kept", n)
	}
	if n := len(kept["sound"]); n != maxReport {
		t.Errorf("of a report that is not too long, %d bytes are kept", n)
	}
}

// TestLongRecordsAreNotKept checks large ConfigMaps: fifty of a megabyte, named like those of peerings, took half of a
// node helper's memory limit, and parsing them half of a core.
func TestLongRecordsAreNotKept(t *testing.T) {
	for _, name := range []string{records.PeeringName("b"), firstGateway("b").Name(), records.FabricName, records.IPAMName} {
		id, _ := records.IdentityOf(name)
		most := records.MaxSize(id.Component)
		for size, want := range map[int]int{most: most, most + 1: len(tooLong)} {
			text := strings.Repeat("x", size)
			kept := trimmed(&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": text}},
				Data:       map[string]string{records.DataKey: text, "more": text}, BinaryData: map[string][]byte{"more": []byte(text)},
			}, true).(*corev1.ConfigMap)
			if kept.Size() > want+100 {
				t.Errorf("%s: %d bytes are kept", name, kept.Size())
			}
			if n := len(kept.Data[records.DataKey]); n != want {
				t.Errorf("%s: %d bytes are kept of a record of %d", name, n, size)
			}
		}
	}
	report := strings.Repeat("x", 1<<20) // for 5,000 nodes
	kept := trimmed(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: firstGateway("b").StatusName()}, Data: map[string]string{records.DataKey: report}}, true)
	if n := len(kept.(*corev1.ConfigMap).Data[records.DataKey]); n != len(report) {
		t.Errorf("%d bytes are kept of a gateway's report of %d", n, len(report))
	}
}
