//go:build linux

package helper

import (
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// TestNodeRecords: one node's damaged report costs no other node.
func TestNodeRecords(t *testing.T) {
	s := cache.NewStore(cache.MetaNamespaceKeyFunc)
	for name, report := range map[string]string{
		"node-10.80.0.7": "version: 1\nname: n1\ninternal: 10.80.0.7\nmtu: 1500\nkernel: {release: r, wireGuard: true, geneve: true, vxlan: true}\n",
		"node-10.80.0.8": "version: 1\nname: [\n",
		"node-10.80.0.9": "", // has not reported yet
	} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"liqonet.io/node": report}}}
		if err := s.Add(lease); err != nil {
			t.Fatal(err)
		}
	}
	nodes, err := nodeRecords(s)
	if len(nodes) != 1 || nodes[0].Name != "n1" {
		t.Errorf("nodes %v", nodes)
	}
	if err == nil || !strings.Contains(err.Error(), "read Lease node-10.80.0.8") {
		t.Errorf("error %v: want it to name the damaged Lease", err)
	}
}
