package cache

import (
	"encoding/json"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
)

// TestNoSecretsOfPods checks that a helper stores no settings of pods' containers.
func TestNoSecretsOfPods(t *testing.T) {
	text, err := json.Marshal(Trimmed(&corev1.Pod{
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
	kept := Trimmed(lease, true).(*coordinationv1.Lease).Annotations
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
	for _, name := range []string{records.PeeringName("b"), (records.GatewayID{Peering: "b", Number: 1}).Name(), records.FabricName, records.IPAMName} {
		id, _ := records.IdentityOf(name)
		most := records.MaxSize(id.Component)
		for size, want := range map[int]int{most: most, most + 1: len(TooLong)} {
			text := strings.Repeat("x", size)
			kept := Trimmed(&corev1.ConfigMap{
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
	kept := Trimmed(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: (records.GatewayID{Peering: "b", Number: 1}).StatusName()}, Data: map[string]string{records.DataKey: report}}, true)
	if n := len(kept.(*corev1.ConfigMap).Data[records.DataKey]); n != len(report) {
		t.Errorf("%d bytes are kept of a gateway's report of %d", n, len(report))
	}
}
