//go:build linux

package node

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestNodeAddress checks the address that a node reports for other clusters.
func TestNodeAddress(t *testing.T) {
	internal, external := corev1.NodeInternalIP, corev1.NodeExternalIP
	for _, c := range []struct {
		has  []corev1.NodeAddress
		want string
	}{
		{nil, "invalid IP"},
		{[]corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "n1"}, {Type: internal, Address: "fd00::1"}, {Type: internal, Address: "10.0.0.1"}}, "10.0.0.1"},
		{[]corev1.NodeAddress{{Type: internal, Address: "10.0.0.1"}, {Type: internal, Address: "10.0.0.2"}}, "10.0.0.1"},
		{[]corev1.NodeAddress{{Type: internal, Address: "10.0.0.1"}, {Type: external, Address: "192.0.2.1"}, {Type: external, Address: "192.0.2.2"}}, "192.0.2.1"},
		{[]corev1.NodeAddress{{Type: external, Address: "192.0.2.1"}, {Type: internal, Address: "10.0.0.1"}}, "192.0.2.1"},
	} {
		node := &corev1.Node{Status: corev1.NodeStatus{Addresses: c.has}}
		if got := addressOf(node); got.String() != c.want {
			t.Errorf("%v: %v, want %s", c.has, got, c.want)
		}
	}
}
