//go:build linux

package helper

import (
	"errors"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// TestNodeRecords: one node's damaged or false report costs no other node.
func TestNodeRecords(t *testing.T) {
	s := cache.NewStore(cache.MetaNamespaceKeyFunc)
	for name, report := range map[string]string{
		"node-10.80.0.7": "version: 1\nname: n1\ninternal: 10.80.0.7\nmtu: 1500\nkernel: {release: r, wireGuard: true, geneve: true, vxlan: true}\n",
		"node-10.80.0.8": "version: 1\nname: [\n",
		"node-10.80.0.9": "", // has not reported yet
		"node-10.80.1.0": "version: 1\nname: n2\ninternal: 10.80.1.0\nmtu: 1500\nkernel: {release: r, wireGuard: true, geneve: true, vxlan: true}\n",
	} {
		holder := "n1"
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"liqonet.io/node": report}},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder},
		}
		if err := s.Add(lease); err != nil {
			t.Fatal(err)
		}
	}
	nodes, errs := nodeRecords(s)
	err := errors.Join(errs...)
	if len(nodes) != 1 || nodes[0].Name != "n1" {
		t.Errorf("nodes %v", nodes)
	}
	for _, refused := range []string{"read Lease node-10.80.0.8", "read Lease node-10.80.1.0"} {
		if err == nil || !strings.Contains(err.Error(), refused) {
			t.Errorf("error %v, want %q", err, refused)
		}
	}
}
