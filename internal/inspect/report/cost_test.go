package report

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
)

// hub returns the reports of some gateways about some nodes, and a scrubber that knows the gateways' keys.
func hub(tb testing.TB, gateways, nodes int) (objects []kube.Object, s *scrubber, size int) {
	tb.Helper()
	s = new(scrubber)
	for g := range gateways {
		name := fmt.Sprintf("status-peer%d", g)
		for range 2 {
			var key [32]byte
			_, _ = rand.Read(key[:])
			s.addSecret([]byte(base64.StdEncoding.EncodeToString(key[:])))
		}
		report := records.Status{
			Version: records.SchemaVersion, Time: time.Now(), Pod: fmt.Sprintf("gateway-peer%d-7d9f8b6c5d-x2x4z", g), Implementation: records.Kernel, Overlay: records.Geneve,
		}
		for n := range nodes {
			seen := report.Time.Add(-time.Duration(n*g) * time.Microsecond)
			report.Nodes = append(report.Nodes, records.NodeStatus{
				Name: fmt.Sprintf("ip-10-0-%d-%d.eu-west-1.compute.internal", n/250, n%250), LastEcho: seen, LastProof: seen,
				RTT: records.Duration(n) * 1000, ProofRTT: records.Duration(n) * 3000, Path: records.PathSize{Asked: true, MTU: 1500},
			})
		}
		text, err := records.Draft(report)
		require.NoError(tb, err)
		size += len(text)
		objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{records.DataKey: text}})
	}
	return objects, s, size
}

// BenchmarkObjects writes the reports of 40 gateways about 500 nodes, without the keys of these gateways.
func BenchmarkObjects(b *testing.B) {
	objects, s, size := hub(b, 40, 500)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		c := &collection{}
		c.scrub = scrubber{known: s.known, raw: s.raw, words: s.words}
		part{c, nil, "local"}.addYAML("ConfigMap", objects)
	}
}
